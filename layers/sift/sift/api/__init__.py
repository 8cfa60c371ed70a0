"""The HTTP API: what a request looks like, what is answered, and nothing of how a job runs."""
