"""Pages of the agents: setting, servers, activation; and what all consoles share."""
