"""A broker within this process."""
