"""Describes whether the pipeline can run here: it may be switched off, and what it needs may be missing.
Everything else works without it."""

import shutil
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from insights.models import ArchiveBlock


@dataclass(frozen=True, slots=True)
class Readiness:
    """`off`: by choice. `missing`: names of programs and packages."""

    off: bool
    missing: tuple[str, ...]

    @property
    def ready(self) -> bool:
        return not self.off and not self.missing

    @property
    def says(self) -> str:
        """One sentence for people; empty where it is ready."""
        if self.off:
            return _why_off(settings.MA_PIPELINE)
        if self.missing:
            return _("The pipeline cannot run here. Missing: %(names)s.") % {"names": ", ".join(self.missing)}
        return ""


def _why_off(code: str) -> str:
    if code == "off":
        return _("The pipeline is disabled (MA_PIPELINE).")
    if code == "little-memory":
        return _("The pipeline is disabled: this machine has too little memory (docs/how-to/pipeline.md).")
    if code == "little-disk":
        return _(
            "The pipeline is disabled: the data disk has too little free space (docs/how-to/pipeline.md)."
        )
    return _("The pipeline is disabled: its archive location is not set (MA_ARCHIVE_URL).")


def is_default() -> bool:
    """Returns whether the archive is the one that `./ma up` chose by itself."""
    return bool(settings.MA_ARCHIVE_URL and settings.MA_PIPELINE == "default")


def readiness() -> Readiness:
    """Looks for files only: nothing is started."""
    if not settings.MA_ARCHIVE_URL:
        return Readiness(True, ())
    return Readiness(False, tuple(name for name, there in _needs() if not there))


def submit_program() -> Path | None:
    """`spark-submit` of a Spark that is named, else of the Python package."""
    if settings.MA_PIPELINE_SUBMIT:
        found = shutil.which(settings.MA_PIPELINE_SUBMIT)
        return Path(found) if found else None
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return None
    program = Path(spec.origin).parent / "bin" / "spark-submit"
    return program if program.exists() else None


def _needs() -> list[tuple[str, bool]]:
    return [
        ("Java", java() is not None),
        ("spark-submit" if settings.MA_PIPELINE_SUBMIT else "pyspark", submit_program() is not None),
        ("pyarrow", find_spec("pyarrow") is not None),
        ("JDBC (MA_PIPELINE_DRIVERS)", all(Path(path).exists() for path in settings.MA_PIPELINE_DRIVERS)),
    ]


def java() -> str | None:
    return shutil.which("java")


def is_on() -> bool:
    """Returns whether retention waits for it. For one that nobody chose it does not as long as no run ever
    could begin: a machine that never gets Spark would keep everything for ever. Once there are blocks, it
    does."""
    if not settings.MA_ARCHIVE_URL:
        return False
    if not is_default() or readiness().ready:
        return True
    return ArchiveBlock.objects.exists()
