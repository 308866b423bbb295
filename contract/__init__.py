"""What MA, KMA and pipeline agree on: records, rules and names. Standard library only, pure."""
