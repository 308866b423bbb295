"""REST of the agents app, and what the APIs of the apps above share: authentication, permissions, errors,
parsing."""
