"""Forms and lists of this app's rows in the admin."""

from agents.admin import activations, destinations, groups, places, settings

__all__ = ["activations", "destinations", "groups", "places", "settings"]
