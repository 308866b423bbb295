"""An application of the archive's part alone, for tests that kill it: python archive_only.py PLAN REPORT."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path

from pipeline.archive.reading import Archive
from pipeline.archive.source import Source
from pipeline.archive.stages import archive_stage
from pipeline.session import build

plan = json.loads(Path(sys.argv[1]).read_text())
session = build()
archive = Archive(session, plan["archive"])
done = archive_stage(
    session, plan["blocks"], plan["verify"], Source.of_plan(plan["source"], os.environ), archive
)
Path(sys.argv[2]).write_text(json.dumps(asdict(done)))
session.stop()
