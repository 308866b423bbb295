"""Finding dead letters: one filter for pages, REST, export and jobs, and pages of what it finds at any
size."""
