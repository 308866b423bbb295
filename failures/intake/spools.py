"""Records that were stored and are not here any more: the database was put back from a copy, or another
server of it took over that had not got the last commits. The mark of the spool went back with them, so the
KMA's own is higher; what it still has it sends again (`kma.delivered`).
"""

from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db.models import F, Q, QuerySet

from agents.models import Server
from failures.intake.sanitize import BIGGEST
from failures.models import SpoolMark

TOLD_FOR = timedelta(days=1)  # by the doctor: what does not come within a day does not come

log = structlog.get_logger(__name__)


def behind(server: Server, spool: UUID, told: int, now: datetime) -> int | None:
    """For `agents.spools`: how much of the spool is stored, None where that is all that its KMA was told."""
    if not 0 < told <= BIGGEST:
        return None
    mark = SpoolMark.objects.filter(pk=spool).first()
    if mark is None:
        return 0  # its row is for the first batch to make: who only speaks leaves none
    if mark.server_id != server.pk or mark.stored_up_to >= told:
        return None
    note(mark, told, now)
    return mark.stored_up_to


def note(mark: SpoolMark, told: int, now: datetime) -> None:
    """Once per loss, however often its KMA is asked, unless the records have come meanwhile."""
    first = mark.stored_up_to + 1
    same = Q(lost_from=first, lost_to=told, lost_at__isnull=False)
    rows = SpoolMark.objects.filter(pk=mark.pk, stored_up_to=mark.stored_up_to).exclude(same)
    if rows.update(lost_at=now, lost_from=first, lost_to=told):
        log.error(
            "records are lost here: asked for again",
            server=mark.server.name,
            spool=str(mark.spool),
            first=first,
            last=told,
        )


def still_lost(now: datetime) -> QuerySet[SpoolMark]:
    """Spools of which something that was stored is not here again."""
    rows = SpoolMark.objects.filter(lost_to__gt=F("stored_up_to"), lost_at__gt=now - TOLD_FOR)
    return rows.select_related("server").order_by("server__name", "spool")


def passed_over(now: datetime) -> QuerySet[SpoolMark]:
    """Spools of which something will never come, as was seen lately."""
    return (
        SpoolMark.objects.filter(passed_at__gt=now - TOLD_FOR)
        .select_related("server")
        .order_by("server__name", "spool")
    )
