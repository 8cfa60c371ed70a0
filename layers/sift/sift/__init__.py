"""sift: durable batches of fetches, run in the user's own AWS account."""

__version__ = "0.1.0"
