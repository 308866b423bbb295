"""Counts of failures by activation, server, fingerprint and hour."""
