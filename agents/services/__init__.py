"""What can be done with the rows of this app. Each step is one short transaction."""
