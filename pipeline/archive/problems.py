"""What can be wrong with the archive or its source, as a decision."""


class ArchiveError(Exception):
    """The block stays as it is planned; the next run tries it again. The text says which block and why."""
