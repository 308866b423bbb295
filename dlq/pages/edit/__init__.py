"""Pages on which dead letters are edited before they are given back: one of them, or many by a rule."""
