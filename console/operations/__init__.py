"""Describes what people do: each verb is declared once; its page, its REST route and its command are made
from it."""
