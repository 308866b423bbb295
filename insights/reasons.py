"""Every reason that rows of this app keep. `grep` for a code finds where it is given."""

from django.utils.translation import gettext_lazy as _

from console.reasons import ReasonKind

# -- why a run of the pipeline did not do all it should --
STAGES_FAILED = ReasonKind("pipeline_run.stages_failed", "%(errors)s")
APPLICATION_ENDED = ReasonKind(
    "pipeline_run.application_ended", _("The Spark application ended with exit code %(status)s: %(words)s")
)
TOO_LONG = ReasonKind(
    "pipeline_run.too_long",
    _("The run took longer than %(hours)s h (MA_PIPELINE_HOURS) and was stopped."),
)
TOO_LARGE = ReasonKind(
    "pipeline_run.too_large",
    _("The run needed more than %(mb)s MB of memory (MA_PIPELINE_MEMORY_MB) and was stopped."),
)
NO_SUBMIT = ReasonKind(
    "pipeline_run.no_submit",
    _("spark-submit was not found: install pyspark or set MA_PIPELINE_SUBMIT."),
)
KEY_UNREADABLE = ReasonKind(
    "pipeline_run.key_unreadable",
    _(
        "sslkey is in PEM format, which the PostgreSQL JDBC driver cannot read. Create a DER "
        "copy next to it: openssl pkcs8 -topk8 -nocrypt -outform DER -in %(key)s -out "
        "%(converted)s"
    ),
)
PIPELINE_BROKE = ReasonKind("pipeline_run.broke", "%(type)s: %(text)s")
SIGNALLED = ReasonKind("pipeline_run.signalled", _("The pipeline run was stopped by a signal."))
NOT_TAKEN = ReasonKind("pipeline_run.not_taken", _("No process picked up the run."))
PROCESS_GONE = ReasonKind(
    "pipeline_run.process_gone", _("The pipeline process (%(pid)s on %(host)s) no longer exists.")
)
PROCESS_SILENT = ReasonKind(
    "pipeline_run.process_silent",
    _("No heartbeat from the pipeline process (%(pid)s on %(host)s) since %(since)s."),
)
