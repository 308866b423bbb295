"""Failure protocols: intake, pages by activation and server."""
