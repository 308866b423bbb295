"""Pages on which dead letters are edited before they are replayed: one of them, or many by a rule."""
