"""What is done beside requests: locks between processes."""
