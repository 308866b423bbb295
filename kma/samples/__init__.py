"""Agents of the demo, of the acceptance tests and of the benches."""
