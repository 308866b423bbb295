"""Kinds of failures over everything: merged and split by people, and the book of what is known of them."""
