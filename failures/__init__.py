"""Describes what went wrong: failure protocols, stored exactly once, and what agents need to know of them."""
