"""Fetching whole: a letter too large for the index is looked for in its queue, from the head."""
