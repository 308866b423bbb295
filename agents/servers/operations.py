"""Describes what people do with a server: cordon, drain, uncordon it, remove one that is gone for good,
and revoke a token of its KMA.

Nothing new begins on a cordoned one; from a draining one its runs move or end. This duty is a wish of the
MA: planning follows it, a KMA knows nothing of it. Killed after the commit and before the planning,
`agents.tend` plans.
"""

from datetime import datetime
from typing import Any, ClassVar

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.activations.plan import plan_open_activations
from agents.isolation import isolated
from agents.models import Duty, Interruption, Run, Server, ServerState, ServerToken, StateChange
from agents.reasons import TIME_OVER, UNTIL
from agents.state_history import note, why_of
from console.audit.log import Record, no_record
from console.operations.inputs import REASON, Until
from console.operations.operation import UNCHANGED, Act, Done, ModelPermission, Operation, Question, Resource
from console.operations.refusals import Refused
from console.reasons import NO_REASON, Reason
from console.tokens.operations import RevokesToken
from console.ui.page import Text


def set_duty(
    server: Server,
    duty: Duty,
    by: Any,
    now: datetime,
    *,
    reason: str = "",
    until: datetime | None = None,
    record: Record = no_record,
) -> bool:
    """Returns whether something changed. `until`: then it is back in service by itself. Raises Refused: that
    is past."""
    if until is not None and until <= now:
        raise Refused(
            "until_is_past",
            gettext("The end time is invalid: it is in the past."),
            gettext("Choose a later time."),
        )
    current = Server.objects.get(pk=server.pk)
    if (current.duty, current.duty_reason, current.duty_until) == (duty, reason, until):
        return False
    why = UNTIL(why=why_of(by, reason), until=f"{until:%Y-%m-%d %H:%M} UTC") if until else why_of(by, reason)
    return _change(current, duty, by, reason, until, now, why=why, record=record)


def expire_duties(now: datetime) -> int:
    """Takes servers back whose time is over; how many."""
    over = Server.objects.filter(duty_until__lte=now).exclude(duty=Duty.ACTIVE)
    back = 0
    for server in list(over):
        with isolated("duties", server=server.name):
            back += _change(server, Duty.ACTIVE, None, "", None, now, why=TIME_OVER())
    return back


def _change(
    seen: Server, duty: Duty, by: Any, reason: str, until: datetime | None, now: datetime,
    *, why: Reason = NO_REASON, record: Record = no_record,
) -> bool:  # fmt: skip
    """Lets the first of two win that come at once, each based on what it saw."""
    person = by if getattr(by, "pk", None) else None
    values = {
        "duty": duty,
        "duty_reason": reason,
        "duty_until": until,
        "duty_by": None if duty == Duty.ACTIVE else person,
        "duty_since": now,
    }
    with transaction.atomic():
        unchanged = Server.objects.filter(pk=seen.pk, duty=seen.duty, duty_since=seen.duty_since)
        if unchanged.update(**values) != 1:
            return False
        note(None, "server", seen.duty, duty.value, now=now, reason=why, by=person, server=seen)
        record()
    plan_open_activations(now, seen)
    return True


SERVERS = Resource(
    name="server",
    rows=lambda: Server.objects.select_related("duty_by"),
    key="name",
    route="servers/<str:name>/",
    view="agents.view_server",
    list_page="servers",
    title=_("Servers"),
)


class _ChangesDuty(Operation[Server]):
    """`asks`, `done`: with the name of the server."""

    on = SERVERS
    permission = ModelPermission("agents.can_change_duty", _("Can cordon and drain servers"))
    duty: ClassVar[Duty]
    asks: ClassVar[Text]
    explained: ClassVar[tuple[Text, ...]]
    done: ClassVar[Text]

    def offered(self, server: Server) -> bool:
        return server.duty != self.duty

    def question(self, server: Server, by: Any, **named: Any) -> Question:
        return Question(self.asks % {"server": server.name}, list(self.explained))

    def run(self, server: Server, act: Act, **inputs: Any) -> Done:
        changed = set_duty(server, self.duty, act.by, act.now, record=act.record, **inputs)
        return Done(self.done % {"server": server.name} if changed else UNCHANGED)


class Cordon(_ChangesDuty):
    """Starts no new runs on the server; existing runs stay."""

    code, label, icon, quiet = "server.cordon", _("Cordon"), "pause", True
    duty, inputs = Duty.CORDONED, {"reason": REASON, "until": Until()}
    asks, done = _("Cordon %(server)s?"), _("Cordoned: %(server)s")
    explained = (_("No new instances start on the server. Running instances continue."),)


class Drain(_ChangesDuty):
    """Starts no new runs on the server. Runs with placement ANY move to another suitable server; runs with
    MANY end in order."""

    code, label, icon, quiet = "server.drain", _("Drain"), "down", True
    duty, inputs = Duty.DRAINING, {"reason": REASON, "until": Until()}
    asks, done = _("Drain %(server)s?"), _("Draining: %(server)s")
    explained = (
        _(
            "No new instances start on the server. Running instances stop gracefully: messages in "
            "progress finish, and the rest return to the queue."
        ),
        _(
            "An instance of a single-server setting moves to another suitable server. If there is "
            "no such server, the instance stays."
        ),
    )


class Uncordon(_ChangesDuty):
    """Puts a server in service again."""

    code, label, icon = "server.uncordon", _("Uncordon"), "play"
    duty = Duty.ACTIVE
    asks, done = _("Uncordon %(server)s?"), _("Uncordoned: %(server)s")
    explained = (_("Settings whose pool includes this server may start there immediately."),)


class RemoveServer(Operation[Server]):
    """Removes a server permanently, for example after it was decommissioned or renamed."""

    code, label, icon, tone = "server.remove", _("Remove server"), "trash", "danger"
    on, permission = SERVERS, ModelPermission("agents.delete_server", _("Can delete server"))

    def offered(self, server: Server) -> bool:
        return server.state(timezone.now()) is not ServerState.ALIVE

    def question(self, server: Server, by: Any, **named: Any) -> Question:
        goes = _("The server's tokens, closed instances and list of available agents are also deleted.")
        stays = _(
            "Failure protocols, dead letters, breaker trips and the history of settings are kept "
            "under the name of this server."
        )
        return Question(gettext("Remove %(server)s permanently?") % {"server": server.name}, [goes, stays])

    def refusal(self, server: Server, now: datetime) -> Refused | None:
        if server.state(now) is ServerState.ALIVE:
            text = gettext("The server %(name)s cannot be removed: it is online. Stop its KMA first.")
            return Refused("alive", text % {"name": server.name})
        still = Run.objects.filter(server=server, closed_at=None).order_by()
        if keys := sorted(set(still.values_list("activation__setting__key", flat=True))):
            text = gettext(
                "The server %(name)s cannot be removed: it has open instances (%(keys)s). Remove the "
                "server from the pools of these settings, or disable the settings. Then wait until "
                "the instances are closed."
            )
            return Refused("open_runs", text % {"name": server.name, "keys": ", ".join(keys)})
        return None

    @transaction.atomic
    def run(self, server: Server, act: Act, **inputs: Any) -> Done:
        """The lock keeps a heartbeat and a planner out between the question and the removal."""
        current = Server.objects.select_for_update().get(pk=server.pk)
        if refused := self.refusal(current, act.now):
            raise refused
        StateChange.objects.filter(server=current, setting=None).delete()
        StateChange.objects.filter(server=current).update(server=None)
        Interruption.objects.filter(server=current).delete()
        Run.objects.filter(server=current).delete()
        current.delete()
        act.record()
        return Done(gettext("Removed: %(server)s") % {"server": server.name}, is_gone=True)


class RevokeServerToken(RevokesToken):
    """Revokes the token: requests of a KMA that uses it are refused."""

    code = "server_token.revoke"
    on = Resource(
        name="server_token",
        rows=lambda: ServerToken.objects.select_related("server"),
        key="pk",
        route="server-tokens/<int:pk>/",
        view="agents.view_servertoken",
        list_page="agents_servertoken_changelist",
        page="agents_servertoken_change",
        title=_("Server tokens"),
    )
    permission = ModelPermission("agents.change_servertoken", _("Can change server token"))

    def detail(self, token: ServerToken) -> dict[str, Any]:
        return {"server": token.server.name}
