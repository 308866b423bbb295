"""What happened, of all kinds, in the order of time: beside curves and as a list."""
