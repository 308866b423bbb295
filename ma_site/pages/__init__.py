"""Pages that know everything: the operations overview, the list of settings, health."""
