"""The queue that carries targets to the workers."""
