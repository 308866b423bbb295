"""Describes who must know what: sources observe, a pure rule decides, each transition is a row that is
told."""
