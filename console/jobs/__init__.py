"""Describes what is done beside requests: locks between processes."""
