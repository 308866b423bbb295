"""Lists of this app's rows in the admin."""

from console.tokens import admin as tokens

__all__ = ["tokens"]
