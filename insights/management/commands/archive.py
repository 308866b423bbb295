"""manage.py archive: what is in the archive, day by day, and looking at it once more."""

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import date
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction
from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from console.audit.log import account_of, record
from insights.archive import planning
from insights.archive.readiness import is_on
from insights.archive.statements import KINDS
from insights.models import ArchiveBlock, BlockState

UNSETTLED = Q(settled_at=None, late_of=None) & ~Q(state=BlockState.REPLACED)


class Command(BaseCommand):
    help = (
        "status: shows rows, blocks and problems of the archive by kind and day. verify: makes the next "
        "pipeline run read all files again and compare counts and checksums with the database. Exit code 1: "
        "a block is damaged or differs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["status", "verify"])
        parser.add_argument("--kind", choices=sorted(KINDS), default="")
        parser.add_argument("--day", type=date.fromisoformat, metavar="YYYY-MM-DD")
        parser.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        if not is_on():
            raise CommandError("The archive is off: MA_ARCHIVE_URL is empty.")
        blocks = ArchiveBlock.objects.exclude(state=BlockState.REPLACED)
        if options["kind"]:
            blocks = blocks.filter(kind=options["kind"])
        if options["day"]:
            blocks = blocks.filter(day=options["day"])
        if options["what"] == "verify":
            asked = _verify(blocks, kind=options["kind"], day=options["day"])
            self.stdout.write(f"The next run verifies {asked} blocks: ./ma manage pipeline run")
            return
        self._tell(blocks, as_json=options["json"])

    def _tell(self, blocks: QuerySet[ArchiveBlock], *, as_json: bool) -> None:
        days = [_told(each) for each in _by_day(blocks)]
        wrong = list(blocks.exclude(problem="").order_by("kind", "number"))
        problems = [{"kind": each.kind, "block": each.number, "problem": each.problem} for each in wrong]
        if as_json:
            self.stdout.write(json.dumps({"days": days, "problems": problems}, indent=1))
        for day in [] if as_json else days:
            self.stdout.write(
                "{day}  {kind}: {rows} rows, {bytes} bytes, {blocks} blocks, {open} not settled".format(**day)
            )
        for problem in [] if as_json else problems:
            self.stdout.write("{kind} {block}: {problem}".format(**problem))
        if wrong:
            raise SystemExit(1)


@transaction.atomic
def _verify(blocks: QuerySet[ArchiveBlock], *, kind: str, day: date | None) -> int:
    """Returns how many the next run reads again."""
    written = blocks.filter(written_at__isnull=False)
    if written.filter(state=BlockState.DAMAGED).exists():
        planning.request_recomputation("damaged files may have been restored")
    asked = written.update(check_asked=True)
    detail = {"kind": kind, "day": day.isoformat() if day else "", **account_of(None)}
    counts = {"blocks": asked}
    record("archive.verify", by=None, now=timezone.now(), target="archive:", counts=counts, detail=detail)
    return asked


def _by_day(blocks: QuerySet[ArchiveBlock]) -> QuerySet[Any, Any]:
    return (
        blocks.filter(~Q(rows=0))
        .order_by("day", "kind")
        .values("day", "kind")
        .annotate(
            rows_of_day=Sum("rows"), bytes_of_day=Sum("bytes"), blocks=Count("pk"),
            unsettled=Count("pk", filter=UNSETTLED),
        )
    )  # fmt: skip


def _told(day: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "day": day["day"].isoformat(), "kind": day["kind"], "rows": day["rows_of_day"] or 0,
        "bytes": day["bytes_of_day"] or 0, "blocks": day["blocks"], "open": day["unsettled"],
    }  # fmt: skip
