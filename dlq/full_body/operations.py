"""Describes what people do with a body that is larger than the index: have it fetched from its queue, stop
that, get its bytes."""

from dataclasses import dataclass
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext_lazy as _

from agents.pools.rights import may_anywhere
from agents.provisioning.queue_counts import message_count
from console.operations.operation import Act, Done, ModelPermission, Operation
from console.operations.refusals import BrokerAway
from console.operations.resource import Resource
from console.ui.page import link
from dlq.full_body.requests import bytes_for, cancel, request_body
from dlq.models import DeadLetter
from dlq.rights import SEE
from dlq.search.visibility import SEE_ALL, letters_for


def letters_seen(by: Any) -> QuerySet[DeadLetter]:
    """Raises PermissionDenied for who may see none."""
    if not may_anywhere(by, SEE):
        raise PermissionDenied
    return letters_for(by)


class _Bodies(Resource[DeadLetter]):
    def url(self, letter: DeadLetter) -> str:
        return f"{link('letter', letter.pk)}#body"


BODIES = _Bodies(
    name="body",
    rows=DeadLetter.objects.all,
    key="pk",
    route="letters/<int:pk>/",
    view="",
    visible=letters_seen,
    list_page="all_dead_letters",
    page="letter",
    title=_("Whole body"),
    setting_key=lambda letter: letter.setting_key,
)


@dataclass(frozen=True, slots=True)
class _SeesLetter:
    def why_not(self, user: Any, letter: DeadLetter) -> str:
        if letters_for(user).filter(pk=letter.pk).exists():
            return ""
        return ModelPermission(SEE_ALL, _("Can view dead letter")).why_not(user, letter)


class _OfBody(Operation[DeadLetter]):
    on, permission, immediate = BODIES, _SeesLetter(), True

    def about(self, letter: DeadLetter) -> dict[str, Any]:
        return {**super().about(letter), "letter": letter.pk, "scope": "one"}


class FetchBody(_OfBody):
    """Begins it. GET says how far it is and, before, what it costs; `whole/body/` gives the bytes for a
    day."""

    code, label, address = "body.fetch", _("Fetch whole"), f"{BODIES.route}whole/"

    def run(self, letter: DeadLetter, act: Act, **inputs: Any) -> Done:
        letters = message_count(letter.queue)
        if letters is None:
            raise BrokerAway()
        return Done("", request_body(letter, letters, act))


class CancelFetch(_OfBody):
    """Cancels one that is going on."""

    code, label, address = "body.cancel", _("Stop fetching it"), f"{BODIES.route}whole/cancel/"

    def run(self, letter: DeadLetter, act: Act, **inputs: Any) -> Done:
        cancel(letter, act)
        return Done("")


class DownloadBody(_OfBody):
    """Its bytes, as `Done.made`. Who may not see what is masked in it does not get them."""

    code, label = "body.download", _("Download all of it")

    def run(self, letter: DeadLetter, act: Act, **inputs: Any) -> Done:
        content = bytes_for(act.by, letter)
        if content is None:
            raise Http404
        act.record()
        return Done("", content)
