"""Pages of dead letters: the overview, the list of a setting, one letter, its case file, giving back,
replays."""
