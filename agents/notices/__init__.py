"""Who is told when a setting trips."""
