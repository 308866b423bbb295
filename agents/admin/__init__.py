"""Forms and lists of this app's rows in the admin."""

from agents.admin import activations, destinations, groups, servers_pools, settings

__all__ = ["activations", "destinations", "groups", "servers_pools", "settings"]
