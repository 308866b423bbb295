"""What MA, KMA and pipeline agree on: records, rules and names. Standard library only, pure."""

# Of the whole product, all parts together.
__version__ = "0.10.0"
