"""Kinds of records, each with what is checked, stored and counted of it."""
