"""Pools, destinations, launch settings, schedules and groups as one text, so that they can live in git."""
