"""The rule of failure protocols: what goes, what holds it back, and how it is walked over."""
