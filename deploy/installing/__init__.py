"""What comes from the network, checked and installed once."""
