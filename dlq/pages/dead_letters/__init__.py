"""Pages of single dead letters: the list, one of them, the case file of a message, files of a list."""
