"""What runs: its order, its runner, and when it is ready."""
