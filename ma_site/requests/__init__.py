"""Describes how the web process takes requests: whole, bounded, logged, and answered while the database is
away."""
