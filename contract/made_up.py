"""Names of what nobody ever did: kept here because the pipeline has to leave it out once it was removed."""

# The launch setting that holds the demo's month of history.
HISTORY_KEY = "demo-history"
