"""REST of the failures app."""
