"""Personal data out of the archive: the pipeline finds the blocks that hold it and writes them anew, here
they are planned before that and put down after it.

What is to be erased is written down before anything of it goes from the database, by which alone some of it
can be found in the archive; that row goes last. Killed in between, the next erasing of the same goes on:
blocks that were planned are taken up again, and one that was written is found by its manifest.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from tempfile import TemporaryFile
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from console.jobs import detached
from insights.archive import planning, report
from insights.archive import planning as anew
from insights.archive.readiness import is_on
from insights.archive.statements import Cut
from insights.models import ArchiveBlock, BlockState, PipelineRun, PoisonProfile
from retention.erasure.protocols import ERASURE_SALT, ArchiveNotErased, Case, ErasureTarget
from retention.models import ArchiveErasure

ANSWER = "ANSWER "
LAST_LINES = 3
# Of ours, by which tests end it and an installation finds what is left of it.
KEPT = ("MA_RUN_FOLDER", "MA_CRASH_AT", "MA_TEST_CRASHES")


def remember_for_archive(wanted: ErasureTarget, cases: Collection[Case]) -> None:
    if not is_on():
        return
    with transaction.atomic():
        row, _new = ArchiveErasure.objects.get_or_create(
            digest=wanted.digest, name=wanted.name, setting_key=wanted.setting
        )
        known = {(setting, key) for setting, key in row.cases}
        row.cases = sorted(known.union(cases))
        row.save(update_fields=["cases"])


def erase_in_archive(wanted: ErasureTarget, dry: bool) -> Mapping[str, int]:
    """Raises ArchiveNotErased; then what was remembered stays."""
    if not is_on():
        return {}
    if not dry and PipelineRun.objects.filter(open=True).exists():
        raise ArchiveNotErased(
            _("archive: the pipeline is running. Run the erasure again after the pipeline finishes")
        )
    remembered = ArchiveErasure.objects.filter(
        digest=wanted.digest, name=wanted.name, setting_key=wanted.setting
    ).first()
    cases = remembered.cases if remembered else []
    with _Program() as program:
        first = program.ask(_told(wanted, cases))
        found, unreadable = first["found"], first["unreadable"]
        rows = sum(each["rows"] for each in found)
        counts = {"rows of the archive": rows}
        needless, left = _sorted(first["quarantined"])
        if dry:
            program.tell("")
            _record_left(left, counts)
            return counts
        blocks = _planned(found, unreadable, wanted, timezone.now())
        asked = {"blocks": [planning.block_plan(each) for each in blocks], "discard": needless}
        answer = program.ask(json.dumps(asked)) if blocks or needless else {}
    _put_down(answer.get("written", ()), timezone.now())
    if failed := answer.get("failed"):
        _take_back(failed)
        raise ArchiveNotErased(_("archive: %(why)s") % {"why": failed[0]["problem"]})
    if remembered is not None:
        remembered.delete()
    counts |= {"archive blocks": len(blocks), "unreadable files of the archive": len(needless)}
    _record_left(left, counts)
    return counts


def _sorted(quarantined: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Paths of files that nobody needs, because all of their block was read from the database anew; and of
    the others, of which nobody can tell what they hold."""
    anew = ArchiveBlock.objects.filter(erases=False, compacts=False, verified_at__isnull=False).exclude(
        replaces=[]
    )
    anew = anew.filter(state__in=[BlockState.VERIFIED, BlockState.REPLACED])
    needless = {
        (kind, number) for kind, numbers in anew.values_list("kind", "replaces") for number in numbers
    }
    of_needless = [each["path"] for each in quarantined if (each["kind"], each["block"]) in needless]
    return of_needless, [each["path"] for each in quarantined if each["path"] not in of_needless]


def _record_left(left: Sequence[str], counts: Mapping[str, int]) -> None:
    """Raises ArchiveNotErased."""
    if left:
        text = _(
            "archive: these unreadable files may contain the data to erase: %(files)s. Delete the "
            "files, or repair them and put them back. Then run the pipeline and repeat the "
            "erasure"
        )
        raise ArchiveNotErased(text % {"files": ", ".join(left)}, counts)


def _told(wanted: ErasureTarget, cases: Sequence[Sequence[str]]) -> str:
    """`key` is the one by which `retention.erasure.protocols.digest_of` makes what stands for a message key;
    nothing else can be told by it."""
    key = hashlib.sha256(ERASURE_SALT.encode() + settings.SECRET_KEY.encode()).hexdigest()
    return json.dumps(
        {
            "message_key": wanted.message_key, "name": wanted.name, "value": wanted.value,
            "setting": wanted.setting,
            "cases": list(cases), "key": key,
        }
    )  # fmt: skip


@transaction.atomic
def _planned(
    found: Sequence[Mapping[str, Any]],
    unreadable: Sequence[Mapping[str, Any]],
    wanted: ErasureTarget,
    now: datetime,
) -> list[ArchiveBlock]:
    """One for each that holds something, with those that an erasing before this one had planned. What cannot
    be read is damaged from here on. Raises ArchiveNotErased."""
    report.take_report({"quarantined": unreadable}, now)
    awaited = _awaited()
    pending = list(
        ArchiveBlock.objects.filter(erases=True, state=BlockState.PLANNED).order_by("kind", "number")
    )
    known = {(each.kind, each.replaces[0]) for each in pending}
    for each in found:
        if (each["kind"], each["block"]) in known:
            continue
        old = ArchiveBlock.objects.filter(kind=each["kind"], number=each["block"]).first()
        if old is None:
            raise ArchiveNotErased(_("archive: block %(block)s is unknown to this site") % {"block": each})
        if (old.kind, old.number) in awaited:
            raise ArchiveNotErased(_("archive: a block is waiting to be rewritten; run the pipeline first"))
        pending.append(
            planning.add(
                old.kind, Cut(old.first, old.last), now, replaces=[old.number, *old.replaces], erases=True,
                late_of=old.late_of, computed=old.computed,
            )
        )  # fmt: skip
    if pending:
        # What jobs summed up holds values of properties: the program deletes it, the next run sums up anew.
        anew.request_recomputation("messages were erased")
        PoisonProfile.objects.filter(property=wanted.name, value_bucket=wanted.value).exclude(
            property=""
        ).delete()
    return pending


def _awaited() -> set[tuple[str, int]]:
    """Blocks of which the next run makes others: two that take the place of one would hold its rows twice."""
    planned = ArchiveBlock.objects.filter(state=BlockState.PLANNED, erases=False).exclude(replaces=[])
    return {(kind, number) for kind, numbers in planned.values_list("kind", "replaces") for number in numbers}


@transaction.atomic
def _put_down(written: Sequence[Mapping[str, Any]], now: datetime) -> None:
    """Keeps what was damaged so: the new block has no rows of the files that cannot be read, and says as many
    as there were, so that it is not read anew from a database that has fewer."""
    for manifest in written:
        block = ArchiveBlock.objects.get(kind=manifest["kind"], number=manifest["block"])
        old = ArchiveBlock.objects.filter(kind=block.kind, number__in=block.replaces)
        settled = old.filter(number=block.replaces[0]).values_list("settled_at", flat=True).first()
        ArchiveBlock.objects.filter(pk=block.pk).update(
            state=BlockState.VERIFIED, rows=manifest["rows"],
            bytes=sum(file["bytes"] for file in manifest["files"]),
            written_at=now, verified_at=now, settled_at=settled or now,
        )  # fmt: skip
        before = old.filter(number=block.replaces[0]).first()
        if before is not None and before.state == BlockState.DAMAGED:
            ArchiveBlock.objects.filter(pk=block.pk).update(
                state=BlockState.DAMAGED, rows=before.rows, settled_at=None, problem=before.problem
            )
        old.update(state=BlockState.REPLACED)


def _take_back(failed: Sequence[Mapping[str, Any]]) -> None:
    """Nothing of them was written: the next erasing plans anew."""
    for each in failed:
        rows = ArchiveBlock.objects.filter(kind=each["kind"], number=each["number"])
        rows.filter(erases=True, state=BlockState.PLANNED).delete()


class _Program:
    """The pipeline's program for it, spoken with over its standard input and output: what is to be erased
    stands in no file, argument or variable."""

    def __enter__(self) -> "_Program":
        known = detached.environment()
        kept = {
            name: value
            for name, value in known.items()
            if name in KEPT or not name.startswith(("MA_", "KMA_"))
        }
        # What Spark says may hold what is erased: nobody but this process reads it.
        self._log = TemporaryFile("w+")
        memory = f"--driver-memory {settings.MA_PIPELINE_MEMORY_MB // 2}m"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pipeline.archive.erasing", settings.MA_ARCHIVE_URL,
            settings.MA_PIPELINE_MASTER],
            cwd=settings.BASE_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True,
            env={**kept, "PYSPARK_PYTHON": sys.executable,
                 "PYSPARK_SUBMIT_ARGS": f"{memory} {_properties()} pyspark-shell"},
            process_group=0,
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        if process.poll() is None:
            try:
                process.communicate(timeout=60)
            except (subprocess.TimeoutExpired, ValueError):
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, self._log):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._broken() from error

    def ask(self, line: str) -> Mapping[str, Any]:
        self.tell(line)
        assert self._process.stdout is not None
        while said := self._process.stdout.readline():
            if said.startswith(ANSWER):
                answer: Mapping[str, Any] = json.loads(said.removeprefix(ANSWER))
                return answer
        raise self._broken()

    def _broken(self) -> ArchiveNotErased:
        self._log.seek(0)
        lines = [line for line in self._log.read().splitlines() if line.strip()]
        said = " | ".join(line.strip() for line in lines[-LAST_LINES:])
        return ArchiveNotErased(
            _("archive: %(why)s") % {"why": said or _("the erasure program ended without a response")}
        )


def _properties() -> str:
    return f"--properties-file {settings.MA_PIPELINE_PROPERTIES}" if settings.MA_PIPELINE_PROPERTIES else ""
