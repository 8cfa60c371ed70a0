"""The table: what is kept of jobs, targets, callers and keys."""
