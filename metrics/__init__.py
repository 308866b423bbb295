"""What was handled in each minute, hour and day, and what lay in the queues meanwhile."""
