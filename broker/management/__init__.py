"""What the product asks of the broker's management, over any `Management`."""
