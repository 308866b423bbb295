"""Tokens of people and their scripts: issued, found, revoked."""
