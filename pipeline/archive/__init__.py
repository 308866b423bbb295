"""The archive: Parquet files that manifests name. What no manifest names does not exist for readers."""

from pipeline.archive.compacting import compact_day
from pipeline.archive.manifests import File, Manifest
from pipeline.archive.problems import ArchiveError
from pipeline.archive.quarantine import guarded
from pipeline.archive.reading import Archive
from pipeline.archive.source import Source
from pipeline.archive.stages import archive_stage
from pipeline.archive.verifying import verify_block
from pipeline.archive.writing import archive_block

__all__ = [
    "Archive",
    "ArchiveError",
    "File",
    "Manifest",
    "Source",
    "archive_block",
    "archive_stage",
    "compact_day",
    "guarded",
    "verify_block",
]
