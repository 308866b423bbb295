"""Forms and lists of this app's rows in the admin."""

from agents.admin import activations, places, settings, tokens

__all__ = ["activations", "places", "settings", "tokens"]
