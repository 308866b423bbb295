"""One engine for what people must know: sources observe, a pure rule decides, each transition is a row that
is told."""
