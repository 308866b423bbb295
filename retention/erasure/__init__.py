"""Personal data of a message, out of database, broker and archive."""
