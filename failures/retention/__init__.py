"""Which protocols are kept for how long, and how the others go."""
