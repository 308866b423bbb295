"""Describes what a run of the pipeline did to the archive, put down in the transaction that loads what it
found."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from console.ui.amounts import number
from insights.archive.readiness import is_on
from insights.models import PipelineRun
from insights.models.archive import ArchiveBlock, BlockState

Report = Mapping[str, Any]
LONGEST_PROBLEM = 2000


def take_report(report: Report, now: datetime) -> bool:
    """`report`: what `pipeline.archive.stages.Archived` holds, and the files that were moved aside. A report
    that was lost costs nothing: the next run finds the manifests and tells of them again. Whether rows that
    were damaged can be read again: what was computed meanwhile lacks some of them."""
    restored = [_written(manifest, now) for manifest in report.get("written", ())]
    restored += [_verified(verified, now) for verified in report.get("verified", ())]
    for failed in report.get("failed", ()):
        _block(failed["kind"], failed["number"]).update(problem=failed["problem"][:LONGEST_PROBLEM])
    for found in report.get("quarantined", ()):
        _damaged(found["kind"], found["block"], f"{found['path']}: {found['why']}")
    return any(restored)


def mark_computed(new_blocks: Mapping[str, list[int]], run: PipelineRun) -> None:
    """Those of a plan that are in the archive now: jobs have seen them."""
    there = ArchiveBlock.objects.filter(written_at__isnull=False, computed=False)
    for kind, numbers in new_blocks.items():
        for start in range(0, len(numbers), 500):
            some = there.filter(kind=kind, number__in=numbers[start : start + 500])
            some.update(computed=True, computed_in=run)


def _block(kind: str, number: int) -> Any:
    return ArchiveBlock.objects.filter(kind=kind, number=number)


def _written(manifest: Report, now: datetime) -> bool:
    """Returns whether it holds what was damaged."""
    blocks = _block(manifest["kind"], manifest["block"])
    size = sum(file["bytes"] for file in manifest["files"])
    planned = blocks.filter(state=BlockState.PLANNED)
    planned.update(state=BlockState.WRITTEN, rows=manifest["rows"], bytes=size, written_at=now, problem="")
    # Made of files that were compared with what was read from them: there is nothing else to verify it by.
    blocks.filter(compacts=True, state=BlockState.WRITTEN).update(state=BlockState.VERIFIED, verified_at=now)
    if manifest["replaces"]:
        old = ArchiveBlock.objects.filter(kind=manifest["kind"], number__in=manifest["replaces"])
        old.update(state=BlockState.REPLACED)
    return bool(manifest["replaces"]) and blocks.filter(compacts=False, erases=False).exists()


def _verified(verified: Report, now: datetime) -> bool:
    """Returns whether it was damaged before, and is whole."""
    blocks = _block(verified["kind"], verified["number"])
    blocks.filter(check_asked=True).update(check_asked=False, verified_at=now, problem="")
    if verified["problems"]:
        _damaged(verified["kind"], verified["number"], "; ".join(verified["problems"]))
        return False
    restored = False
    problem = "" if verified["ok"] else _said(verified)
    if verified["ok"] or not verified["extra"]:
        # What is missing came after it was read: it becomes a block of its own.
        # Also of a damaged one whose files came back: it is looked at where a person asked for it.
        restored = blocks.filter(state=BlockState.DAMAGED).exists()
        open_still = blocks.filter(state__in=[BlockState.WRITTEN, BlockState.DAMAGED])
        open_still.update(state=BlockState.VERIFIED, verified_at=now)
        blocks.update(problem=problem)
        _settle_recomputed(blocks, now)
    else:
        blocks.update(problem=problem)
    return restored


def _settle_recomputed(blocks: Any, now: datetime) -> None:
    """It holds all that the database has of their range, as they did before they were damaged."""
    for kind, replaces in blocks.exclude(replaces=[]).values_list("kind", "replaces"):
        old = ArchiveBlock.objects.filter(
            kind=kind, number__in=replaces, state=BlockState.REPLACED, settled_at=None
        )
        old.filter(verified_at__isnull=False).update(settled_at=now)
        blocks.filter(settled_at=None).update(settled_at=now)


def _said(verified: Report) -> str:
    examples = ", ".join(verified["examples"])
    text = (
        f"{verified['missing']} rows of the database are missing in the block, {verified['extra']} exist "
        f"only there: {examples}"
    )
    return text[:LONGEST_PROBLEM]


def _damaged(kind: str, number: int, problem: str) -> None:
    """It protects nothing any more, nor do those that it was made of."""
    blocks = _block(kind, number)
    replaced = [each for numbers in blocks.values_list("replaces", flat=True) for each in numbers]
    blocks.update(state=BlockState.DAMAGED, settled_at=None, problem=problem[:LONGEST_PROBLEM])
    blocks.filter(late_of__isnull=False).update(verified_at=None)
    ArchiveBlock.objects.filter(kind=kind, number__in=replaced).update(settled_at=None)


# -- damaged blocks: a file cannot be read or is gone --------------------------------------------------------


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
            "%(n)s archive block is damaged: %(names)s",
            "%(n)s archive blocks are damaged: %(names)s",
            self.blocks,
        )
        return text % {"n": number(self.blocks), "names": names}

    @property
    def todo(self) -> str:
        return _(
            "The next run re-reads the blocks whose data is still complete in the database. Rows "
            "from the other blocks are missing from the results. Restore the files of these "
            "blocks from a backup. Then run ./ma manage archive verify and ./ma manage pipeline "
            "run. ./ma manage archive status lists the files. Unreadable files are in %(place)s."
        ) % {"place": f"{settings.MA_ARCHIVE_URL.rstrip('/')}/quarantine/"}


def damage() -> Damage | None:
    """Returns None where nothing is damaged, or the archive is off."""
    if not is_on():
        return None
    damaged = ArchiveBlock.objects.filter(state=BlockState.DAMAGED)
    first = list(damaged.order_by("kind", "number")[:SHOWN])
    if not first:
        return None
    return Damage(damaged.count(), tuple(f"{each.kind} {each.number}" for each in first), first[0].problem)
