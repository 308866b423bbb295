"""Scheduled groups."""
