"""Describes how dates are written, by language."""
