"""Describes who did what, or was refused: rows that are only ever added."""
