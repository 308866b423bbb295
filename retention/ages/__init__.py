"""Describes what has a time of its own."""
