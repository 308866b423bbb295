"""Keeps new starts from the installation or from a pool: by a person, or in maintenance windows."""
