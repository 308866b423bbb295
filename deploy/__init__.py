"""Brings an installation up on one machine. Standard library only: it runs before anything is installed."""
