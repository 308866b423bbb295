"""Describes what is deleted when, and how nobody waits for it; personal data out of everything."""
