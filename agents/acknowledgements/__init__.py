"""Deliveries of the mode CLIENT that wait for an answer."""
