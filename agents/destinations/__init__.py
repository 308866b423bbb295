"""Destinations: addresses of the broker and their redelivery policy."""
