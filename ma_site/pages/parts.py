"""The parts of the house on the health page, and what the pipeline and the archive say of themselves
there."""

from dataclasses import dataclass
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.ui.labels import StateLabel
from console.ui.page import Text, link
from insights.archive.report import damage
from insights.runs.queries import standing

OK, DEGRADED, DOWN, UNUSED = STATES = "ok", "degraded", "down", "unused"


@dataclass(frozen=True, slots=True)
class Part:
    """`since` is when it was last known to be well, or since when it is not; `todo` what a person does about
    it."""

    name: Text
    state: str
    says: Text
    todo: Text = ""
    since: datetime | None = None
    url: str = ""

    @property
    def state_label(self) -> StateLabel:
        return SHOWN[self.state]


SHOWN = {
    OK: StateLabel(gettext_lazy("ok"), "ok", "ok"),
    DEGRADED: StateLabel(gettext_lazy("degraded"), "warn", "warn"),
    DOWN: StateLabel(gettext_lazy("down"), "bad", "bad"),
    UNUSED: StateLabel(gettext_lazy("not in use"), "off", "off"),
}


# -- the data pipeline on the health page: it degrades nothing where it is switched off ----------------------


def archive_parts() -> list[Part]:
    """Nothing while all of it can be read: an operator need not know of it."""
    found = damage()
    return (
        [] if found is None else [Part(_("Archive"), DEGRADED, found.says, found.todo, url=link("insights"))]
    )


def pipeline_part(now: datetime) -> Part:
    name, url, found = _("Data pipeline"), link("insights"), standing(now)
    if found.off:
        return Part(name, UNUSED, _("disabled"), url=url)
    todo = _(
        "The pipeline page shows the reason. Nothing is lost: data not yet archived is kept, "
        "and the next run processes it."
    )
    since = found.loaded.ended_at if found.loaded else None
    if found.says:
        return Part(name, DEGRADED, found.says, todo, since, url)
    if found.failed:
        return Part(name, DEGRADED, _("the last run failed in whole or in part"), todo, since, url)
    if found.old:
        return Part(name, DEGRADED, _("results are out of date"), todo, since, url)
    if found.open:
        return Part(name, OK, _("running"), since=since, url=url)
    return Part(
        name, OK, _("last run succeeded") if found.loaded else _("has not run yet"), since=since, url=url
    )
