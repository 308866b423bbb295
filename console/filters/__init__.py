"""What a list is narrowed by."""
