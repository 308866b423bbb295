"""Servers: places where KMAs run."""
