"""Forms and lists of this app's rows in the admin."""

from agents.admin import activations, alert_rules, destinations, groups, notices, places, settings

__all__ = ["activations", "alert_rules", "destinations", "groups", "notices", "places", "settings"]
