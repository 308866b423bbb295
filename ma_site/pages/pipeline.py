"""The data pipeline on the health page: it degrades nothing where it is switched off."""

from datetime import datetime

from django.utils.translation import gettext as _

from console.ui.page import link
from failures.archive.results import damage
from failures.insights.reading import standing
from ma_site.pages.part import DEGRADED, OK, UNUSED, Part


def archive_parts() -> list[Part]:
    """Nothing while all of it can be read: an operator need not know of it."""
    found = damage()
    return (
        [] if found is None else [Part(_("Archive"), DEGRADED, found.says, found.todo, url=link("insights"))]
    )


def pipeline_part(now: datetime) -> Part:
    name, url, found = _("Data pipeline"), link("insights"), standing(now)
    if found.off:
        return Part(name, UNUSED, _("switched off"), url=url)
    todo = _(
        "Its page says why. Nothing is lost: what is not archived yet is kept, and the next run does it all."
    )
    since = found.loaded.ended_at if found.loaded else None
    if found.says:
        return Part(name, DEGRADED, found.says, todo, since, url)
    if found.failed:
        return Part(name, DEGRADED, _("its last run failed, or a part of it"), todo, since, url)
    if found.old:
        return Part(name, DEGRADED, _("what it found is old"), todo, since, url)
    if found.open:
        return Part(name, OK, _("runs"), since=since, url=url)
    return Part(name, OK, _("ran") if found.loaded else _("has not run yet"), since=since, url=url)
