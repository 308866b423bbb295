"""Lists of any length, a page at a time."""
