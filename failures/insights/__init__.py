"""The data pipeline as the MA runs it: who begins a run, who works on it, what it found, and what became of
it."""
