"""Describes what the demo shows: rows, orders, and a month that never was."""
