"""Rows as files."""
