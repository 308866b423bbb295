"""Asking the next run to compute everything once more: what runs sum up, part by part, cannot be set right
for one block. A request is a row until a whole run that was planned with it has been loaded."""

from collections.abc import Collection

from failures.models.archive import Recomputation


def ask(why: str) -> None:
    """Always another row: one that comes while a run computes must outlive this run. `why`: for people."""
    Recomputation.objects.create(why=why)


def asked() -> list[int]:
    return list(Recomputation.objects.order_by("pk").values_list("pk", flat=True))


def done(requests: Collection[int]) -> None:
    """Those that the run was planned with; one that came since stays."""
    Recomputation.objects.filter(pk__in=requests).delete()
