"""Personal data of messages out of everything that is kept: index, bin, protocols, and letters at the
broker."""
