"""Shows figures as charts on the pages of apps below, and the timeline."""
