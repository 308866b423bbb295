"""STOMP by stomp.py: texts in transactions, and the broker's management."""
