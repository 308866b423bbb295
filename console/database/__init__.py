"""What the databases do in their own ways: the only place that asks which one it is."""
