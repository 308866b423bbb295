"""What lies in the archive and is of no use: left by attempts that were killed, or replaced long ago."""

from datetime import UTC, datetime, timedelta

from pipeline.archive import manifests
from pipeline.archive.reading import Archive, iso
from pipeline.schemas import KINDS

# Whoever began to read what is replaced has so long to end.
GRACE = timedelta(hours=24)


def sweep(archive: Archive, *, now: datetime | None = None, grace: timedelta = GRACE) -> list[str]:
    """What went. Of what is replaced the data first, then its manifest: killed in between, the next one goes
    on."""
    before = iso((now or datetime.now(UTC)) - grace)
    gone: list[str] = []
    for kind in KINDS:
        every = manifests.read_all(archive.files, kind)
        for each in every.values():
            over = {number for number in each.replaces if number in every}
            if each.archived_at < before:
                for number in sorted(over):
                    archive.files.delete(every[number].folder)
                    archive.files.delete(manifests.place(kind, number))
                    gone.append(every[number].folder)
        for entry in archive.files.list(f"manifest/{kind}"):
            if entry.name.startswith("."):
                archive.files.delete(f"manifest/{kind}/{entry.name}")
                gone.append(f"manifest/{kind}/{entry.name}")
        archive.forget(kind)
    return gone
