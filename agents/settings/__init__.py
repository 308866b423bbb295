"""Launch settings."""
