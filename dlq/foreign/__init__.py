"""Dead-letter queues that are not the MA's: named by an administrator, walked like the others, adopted on
request."""
