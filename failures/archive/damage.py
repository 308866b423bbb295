"""Blocks of the archive of which a file cannot be read or is gone: which, and what a person does about it."""

from dataclasses import dataclass

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.ui.amounts import number
from failures.archive import is_on
from failures.models.archive import ArchiveBlock, BlockState

SHOWN = 3


@dataclass(frozen=True, slots=True)
class Damage:
    """`blocks`: how many; `shown`: the first of them, "KIND NUMBER"; `problem`: of the first, with its
    file."""

    blocks: int
    shown: tuple[str, ...]
    problem: str

    @property
    def says(self) -> str:
        names = ", ".join(self.shown) + (", …" if self.blocks > len(self.shown) else "")
        text = ngettext(
            "%(n)s block of the archive is damaged: %(names)s",
            "%(n)s blocks of the archive are damaged: %(names)s",
            self.blocks,
        )
        return text % {"n": number(self.blocks), "names": names}

    @property
    def todo(self) -> str:
        return _(
            "What the database still has whole is read anew by the next run. Rows of the others are missing "
            "in what is "
            "found: put their files back from a backup, then ./ma manage archive verify and ./ma manage "
            "pipeline run. "
            "./ma manage archive status names the files; those that cannot be read lie in %(place)s."
        ) % {"place": f"{settings.MA_ARCHIVE_URL.rstrip('/')}/quarantine/"}


def damage() -> Damage | None:
    """None where nothing is damaged, or the archive is off."""
    if not is_on():
        return None
    damaged = ArchiveBlock.objects.filter(state=BlockState.DAMAGED)
    first = list(damaged.order_by("kind", "number")[:SHOWN])
    if not first:
        return None
    return Damage(damaged.count(), tuple(f"{each.kind} {each.number}" for each in first), first[0].problem)
