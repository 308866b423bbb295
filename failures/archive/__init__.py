"""The archive, as the MA sees it: which rows belong to it, which blocks are planned, what of them is safe
there.

It is written and read by `pipeline/`, a program of its own; what both have in common is the plan and the
report.
"""

from django.conf import settings

from failures.archive import readiness


def is_on() -> bool:
    """Whether retention waits for it. For one that nobody chose it does not as long as no run ever could
    begin: a machine that never gets Spark would keep everything for ever. Once there are blocks, it does."""
    if not settings.MA_ARCHIVE_URL:
        return False
    if not readiness.is_default() or readiness.readiness().ready:
        return True
    from failures.models import ArchiveBlock  # this package is read before the models are

    return ArchiveBlock.objects.exists()
