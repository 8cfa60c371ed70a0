"""Puts the parts together for each function: the only place that makes clients, and none before it is needed."""
