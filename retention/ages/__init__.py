"""What has a time of its own."""
