"""Pages of failures: the list of protocols, one protocol, and panels on the pages of settings and
activations."""
