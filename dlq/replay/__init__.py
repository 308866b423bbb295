"""Giving back: what to do next (pure), the job that does it, and what became of each dead letter."""
