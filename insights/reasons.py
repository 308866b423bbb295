"""Every reason that rows of this app keep. `grep` for a code finds where it is given."""

from django.utils.translation import gettext_lazy as _

from console.reasons import ReasonKind

# -- why a run of the pipeline did not do all it should --
STAGES_FAILED = ReasonKind("pipeline_run.stages_failed", "%(errors)s")
APPLICATION_ENDED = ReasonKind(
    "pipeline_run.application_ended", _("The Spark application ended with %(status)s: %(words)s")
)
TOO_LONG = ReasonKind(
    "pipeline_run.too_long", _("It took longer than %(hours)s hours (MA_PIPELINE_HOURS) and was ended.")
)
TOO_LARGE = ReasonKind(
    "pipeline_run.too_large",
    _("It needed more than %(mb)s MB of memory (MA_PIPELINE_MEMORY_MB) and was ended."),
)
NO_SUBMIT = ReasonKind(
    "pipeline_run.no_submit",
    _("There is no spark-submit: install pyspark, or name one by MA_PIPELINE_SUBMIT."),
)
KEY_UNREADABLE = ReasonKind(
    "pipeline_run.key_unreadable",
    _(
        "sslkey is PEM, which PostgreSQL's JDBC driver does not read. Put one in DER beside it: "
        "openssl pkcs8 -topk8 -nocrypt -outform DER -in %(key)s -out %(converted)s"
    ),
)
PIPELINE_BROKE = ReasonKind("pipeline_run.broke", "%(type)s: %(text)s")
SIGNALLED = ReasonKind("pipeline_run.signalled", _("It was told to stop by a signal."))
NOT_TAKEN = ReasonKind("pipeline_run.not_taken", _("No process took it."))
PROCESS_GONE = ReasonKind("pipeline_run.process_gone", _("Its process %(pid)s on %(host)s is gone."))
PROCESS_SILENT = ReasonKind(
    "pipeline_run.process_silent",
    _("Its process %(pid)s on %(host)s has given no sign of life since %(since)s."),
)
