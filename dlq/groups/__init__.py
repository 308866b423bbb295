"""Dead letters in groups: what they died of, where, in which activation, on which day. Bounded at any
size."""
