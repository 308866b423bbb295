"""Apache Artemis behind a small port. No Django, no domain."""
