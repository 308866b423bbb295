"""Forms and lists of this app's rows in the admin."""

from agents.admin import activations, groups, notices, places, settings, tokens

__all__ = ["activations", "groups", "notices", "places", "settings", "tokens"]
