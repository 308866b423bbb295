"""Records of a KMA's spool into rows: each exactly once, whoever sends what again."""
