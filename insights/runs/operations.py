"""Describes what people do with runs of the pipeline: ask for one, cancel it."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext, pgettext_lazy
from django.utils.translation import gettext_lazy as _

from console.operations.inputs import ChoicesInput, Instant
from console.operations.operation import Act, Done, ModelPermission, Operation, Resource
from console.operations.refusals import Refused
from insights.archive import planning as recomputation
from insights.models import PipelineRun, PipelineTrigger
from insights.runs.folder import LABELS
from insights.runs.reaper import reap
from insights.runs.start import cancel, request_run

PIPELINE_RUNS = Resource(
    name="pipeline_run",
    rows=lambda: PipelineRun.objects.select_related("asked_by"),
    key="pk",
    route="insights/runs/<uuid:pk>/",
    view="insights.view_pipelinerun",
    list_page="insights",
    title=_("Insights"),
)
MAY_RUN = ModelPermission("insights.can_run_pipeline", _("Can run the pipeline"))
MAY_CANCEL = ModelPermission("insights.can_cancel_pipeline", _("Can cancel a pipeline run"))


class StartPipelineRun(Operation[PipelineRun]):
    """Requests a run; a worker starts it. 409 if a run is in progress, or if none can run here."""

    code, label, makes, immediate = "pipeline_run.start", pgettext_lazy("the pipeline", "Run now"), True, True
    on, permission, address = PIPELINE_RUNS, MAY_RUN, "insights/run/"
    inputs = {
        "jobs": ChoicesInput(pgettext_lazy("of the pipeline", "Jobs"), sorted(LABELS.items())),
        "since": Instant(),
        "until": Instant(),
    }

    def hidden(self, run: PipelineRun) -> frozenset[str]:
        """The page asks for whole runs."""
        return frozenset(self.inputs)

    def run(self, _empty: PipelineRun, act: Act, *, anew: bool = False, **asked: Any) -> Done:
        """`anew`, and a `master` of Spark: of the command line alone."""
        reap(act.now)
        trigger = PipelineTrigger.PAGE if act.by else PipelineTrigger.TERMINAL
        with transaction.atomic():
            run = request_run(trigger, act.now, by=act.by, **asked)
            if anew:
                recomputation.request_recomputation("requested on the command line")
            about = {"target": PIPELINE_RUNS.target(run)}
            act.record(about=about, **({"anew": True} if anew else {}))
        done = _("The pipeline will start within seconds.")
        return Done(done, run, to_list=True)


class CancelPipelineRun(Operation[PipelineRun]):
    """Cancels the run within seconds; its results are discarded. 409 if it has ended."""

    code, label, immediate = "pipeline_run.cancel", _("Cancel run"), True
    on, permission = PIPELINE_RUNS, MAY_CANCEL

    @transaction.atomic
    def run(self, run: PipelineRun, act: Act, **inputs: Any) -> Done:
        if not cancel(run, act.now, by=act.by.get_username() if act.by else "terminal"):
            raise Refused(
                "over", gettext("Cannot cancel: the run has already ended."), gettext("No action is needed.")
            )
        act.record()
        return Done(_("The run is being cancelled. Results computed so far are not shown."), to_list=True)


PIPELINE_OPERATIONS: tuple[type[Operation[PipelineRun]], ...] = (StartPipelineRun, CancelPipelineRun)
