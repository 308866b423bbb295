"""Starts of settings, with their runs."""
