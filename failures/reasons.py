"""Every reason that rows of this app keep. `grep` for a code finds where it is given."""

from console.reasons import ReasonKind

# -- why a run of retention did not do all it should --
PART_FAILED = ReasonKind("retention_run.part_failed", "%(part)s: %(type)s: %(text)s")
