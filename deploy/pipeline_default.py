"""The archive that a site has though nobody named one: under its data folder, where the machine is large
enough.

It is decided once, by `./ma up`; the folder is the decision. A machine that gets small later keeps its
archive.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from deploy.config import Config
from deploy.layout import Layout

MB = 1024 * 1024
# Beside a run itself (MA_PIPELINE_MEMORY_MB): broker, site and KMAs of this machine, and what else runs here.
REST_MB = 3000
MEMORY_MB = 4096
FREE_DISK_MB = 5000


def decide(config: Config, layout: Layout) -> None:
    """Makes the folder where the pipeline is to be on by default."""
    if not (_is_off(config) or _is_named(config) or reason_against(config, layout)):
        layout.archive.mkdir(exist_ok=True, mode=0o700)


def settings(config: Config, layout: Layout) -> Mapping[str, str]:
    """What the site is told, beside what a person named."""
    if _is_off(config) or _is_named(config):
        return {}
    if layout.archive.is_dir():
        return {"MA_ARCHIVE_URL": url(layout), "MA_PIPELINE": "default"}
    code = reason_against(config, layout)
    return {"MA_PIPELINE": code} if code else {}


def url(layout: Layout) -> str:
    return f"file://{quote(str(layout.archive))}"


def reason_against(config: Config, layout: Layout) -> str:
    """A code that the site knows; empty where nothing is against it."""
    wanted = int(config.handed_on.get("MA_PIPELINE_MEMORY_MB") or MEMORY_MB) + REST_MB
    if _memory_mb() < wanted:
        return "little-memory"
    if shutil.disk_usage(_existing(layout.data)).free < FREE_DISK_MB * MB:
        return "little-disk"
    return ""


def _is_off(config: Config) -> bool:
    return config.handed_on.get("MA_PIPELINE") == "off"


def _is_named(config: Config) -> bool:
    return "MA_ARCHIVE_URL" in config.handed_on


def _memory_mb() -> int:
    """Of the machine, or of the container where that may have less."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text("ascii").strip()
    except OSError:
        limit = "max"
    if limit.isdigit():
        found.append(int(limit))
    return min(found) // MB


def _existing(folder: Path) -> Path:
    while not folder.exists():
        folder = folder.parent
    return folder
