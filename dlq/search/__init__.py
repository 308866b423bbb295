"""Searching dead letters by words: one inverted index over body and properties, in the database itself."""
