"""Finding failure protocols: one filter for pages, REST and files, and pages of what it finds at any size."""
