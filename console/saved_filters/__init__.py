"""Filters of long lists under a name, made once for every list."""
