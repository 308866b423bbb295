"""Records that were stored and are not here any more: the database was put back from a copy, or another server of it
took over that had not got the last commits. The mark of the spool went back with them, so the KMA's own is higher; what
it still has it sends again (`kma.delivered`).
"""

from datetime import datetime
from uuid import UUID

import structlog
from django.db.models import Q

from agents.models import Server
from failures.hygiene import BIGGEST
from failures.models import SpoolMark

log = structlog.get_logger(__name__)


def behind(server: Server, spool: UUID, told: int, now: datetime) -> int | None:
    """For `agents.spools`: how much of the spool is stored, None where that is all that its KMA was told."""
    if not 0 < told <= BIGGEST:
        return None
    mark, _ = SpoolMark.objects.get_or_create(spool=spool, defaults={"server": server, "updated_at": now})
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
