"""What stands above the dead letters of a setting, in groups or one by one: how many, says who, what can be
done."""

from typing import Any

from django.http import Http404, HttpRequest
from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.services.queue_counts import figures_of, message_count
from agents.services.rights import may
from console.lists.keyset import counted
from contract.properties import BIN, UNKNOWN, dead_letter_queue
from dlq.letters_for import letters_for
from dlq.models import LetterState
from dlq.pages.access import check_queue
from dlq.rights import GIVE_BACK


def head_of(request: HttpRequest, key: str) -> dict[str, Any]:
    """Raises Http404 where there is no such queue for this person."""
    setting = LaunchSetting.objects.filter(key=key).select_related("destination").first()
    queue = dead_letter_queue(key)
    check_queue(request.user, queue)
    rows = letters_for(request.user).filter(queue=queue)
    if setting is None and key not in (UNKNOWN, BIN) and not rows.exists():
        raise Http404
    figures = figures_of(setting) if setting else None
    return {
        "title": queue,
        "setting": setting,
        "figures": figures,
        "exact": figures.dead if figures else message_count(queue),
        "indexed": counted(rows.filter(state=LetterState.DEAD)),
        "may_give_back": setting is not None and may(request.user, GIVE_BACK, setting),
    }


def head_of_all() -> dict[str, Any]:
    return {
        "title": _("All dead letters"),
        "setting": None,
        "figures": None,
        "exact": None,
        "indexed": "",
        "may_give_back": False,
    }
