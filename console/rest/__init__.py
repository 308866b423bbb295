"""Describes what every REST route shares: its bodies, its errors, its pages."""
