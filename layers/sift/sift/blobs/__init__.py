"""The bucket: contents and target lists that are too large for the table."""
