"""The remote command: what people do with a site, over REST, from any machine with Python."""
