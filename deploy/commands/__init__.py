"""What `./ma COMMAND` does."""
