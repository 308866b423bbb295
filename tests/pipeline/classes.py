"""Classes of Spark as an earlier JVM has parsed and verified them: its start costs half.

The archive fits class paths that begin as that of the session; other JVMs do without it, silently.
"""

import hashlib
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from subprocess import Popen, TimeoutExpired

from tests.services import cache

# Most of the time of a short run goes into compiling what is run once: the quick compiler alone takes a third
# of it.
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Messages would go to standard output, which spark-class reads.
SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"
SECONDS = 150


def kept() -> Path:
    java = Path(shutil.which("java") or "java").resolve()
    spark = find_spec("pyspark")
    assert spark is not None and spark.origin is not None
    jars = Path(spark.origin).parent / "jars"
    key = f"{java} {java.stat().st_mtime_ns} {jars} {jars.stat().st_mtime_ns} {SHORT_LIVED}"
    return cache() / f"spark-{hashlib.sha256(key.encode()).hexdigest()[:16]}.jsa"


def options() -> str:
    """For JVMs of tests."""
    return f"{SHORT_LIVED} {SILENT} -XX:SharedArchiveFile={kept()}" if kept().exists() else SHORT_LIVED


def recording(made: Path) -> str:
    """For a JVM that makes the archive at its end, if there is none yet."""
    return options() if kept().exists() else f"{SHORT_LIVED} {SILENT} -XX:ArchiveClassesAtExit={made}"


def keep(made: Path, process: "Popen[bytes]") -> None:
    """Ends the JVM that makes the archive. One that takes long goes on alone, and the next session
    records."""
    if kept().exists():
        return
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(SECONDS)
    except TimeoutExpired:
        return
    if made.exists():
        aside = kept().with_suffix(f".{os.getpid()}")
        shutil.move(made, aside)
        aside.replace(kept())
