"""The file systems that this installation writes to: which of them is full, and what a person does then.

The site's doctor says the same with its own means (`ma_site/checks/host.py`): the deployment imports none of
ours.
"""

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deploy.layout import Layout

MB = 1024 * 1024
# Below it SQLite, the journal of the broker and the spools of KMAs cannot grow by what one busy minute
# brings.
LEAST_FREE_MB = 100
# Above it the broker takes no messages (max-disk-usage of broker.xml).
MOST_USED_PERCENT = 95


@dataclass(frozen=True)
class FileSystem:
    """`mounted_at`: where it begins. `holds`: folders of this installation on it. `free`: bytes for this
    user."""

    mounted_at: str
    holds: tuple[str, ...]
    free: int
    total: int
    free_files: int

    @property
    def problem(self) -> str:
        return problem(self.free, self.total, self.free_files)


def problem(free: int, total: int, free_files: int) -> str:
    """What is wrong, for a person; empty: nothing, or a file system that does not say how large it is."""
    if not total:
        return ""
    if free < LEAST_FREE_MB * MB:
        return f"full: {free // MB} MB free of {total // MB} MB"
    if not free_files:
        return "full: no free inodes (df -i)"
    if 100 * (total - free) > MOST_USED_PERCENT * total:
        return f"nearly full: {free // MB} MB free of {total // MB} MB; the broker accepts no messages"
    return ""


def file_systems(layout: Layout) -> list[FileSystem]:
    """Those under the data folder that can be asked, each once."""
    found: dict[int, list[Path]] = {}
    for folder in (layout.data, layout.broker, layout.data / "kma", layout.archive, layout.logs, layout.run):
        try:
            found.setdefault(_existing(folder).stat().st_dev, []).append(folder)
        except OSError:
            continue
    return [each for folders in found.values() if (each := _asked(folders)) is not None]


def lines(layout: Layout, systems: Iterable[FileSystem]) -> list[str]:
    """What is full and what to do; nothing where none is."""
    full = [each for each in systems if each.problem]
    if not full:
        return []
    told = [f"disk: {each.mounted_at} is {each.problem}; it stores {', '.join(each.holds)}" for each in full]
    data = shlex.quote(str(layout.data))
    return [
        *told,
        f"  find large files:     du -xsh {data}/* | sort -h",
        f"  may be deleted:       rm -f {data}/log/*.log.[0-9]*    (old logs)",
        f"  never delete:         {data}/kma (spools: failures not reported yet), {data}/broker (journal:",
        f"                        messages), {data}/db.sqlite3* (database), {data}/archive, {data}/secrets",
        "  then:                 ./ma doctor; if processes do not restart: ./ma down, ./ma up",
    ]


def _existing(folder: Path) -> Path:
    return next(each for each in (folder, *folder.parents) if each.exists())


def _asked(folders: list[Path]) -> FileSystem | None:
    place = _existing(folders[0])
    try:
        facts = os.statvfs(place)
    except OSError:
        return None
    # Some file systems have no number of files: they say 0 of 0.
    free_files = facts.f_favail if facts.f_files else 1
    size = facts.f_frsize
    names = tuple(str(folder) for folder in folders if folder.exists())
    return FileSystem(_mount_of(place), names, facts.f_bavail * size, facts.f_blocks * size, free_files)


def _mount_of(place: Path) -> str:
    place = place.resolve()
    while not os.path.ismount(place) and place != place.parent:
        place = place.parent
    return str(place)
