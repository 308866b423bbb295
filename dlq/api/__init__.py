"""REST of the dlq app."""
