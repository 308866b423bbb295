"""Pages of what the pipeline found and of its runs, and a panel on the page of a setting."""
