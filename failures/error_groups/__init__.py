"""Failures that are alike: counted, merged, split, and what is known of them."""
