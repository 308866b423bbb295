"""The rule of the breaker, applied again to failures that are stored."""
