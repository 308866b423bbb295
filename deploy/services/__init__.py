"""Artemis, Redis and PostgreSQL of our own, and free ports."""
