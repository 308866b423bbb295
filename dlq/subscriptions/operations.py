"""Describes what people do with messages before they are handled: try delayed ones now, hold and release
them, send them to the dead letters; give up the one that blocks an ordered subscription; stop what was asked
for."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.liveness import poll_after_commit
from agents.models import LaunchSetting, Run, SettingKind
from agents.pools.rights import SettingRight, check_anywhere, settings_for, why_not
from agents.state_history import note
from console.audit.log import LONGEST_REASON
from console.operations.inputs import REASON_NEEDED, Seen, TextInput
from console.operations.operation import Act, Done, Operation, Question, Resource
from console.operations.refusals import Refused
from console.reasons import said
from console.ui.page import Text, link
from contract.messages import BlockedMessage
from contract.wire import load
from dlq import rights
from dlq.models.message_action import WaitingAction, WaitingKind
from dlq.subscriptions.requests import Selection, request_action, stop_action

# -- the message that blocks an ordered subscription, as its run tells, and giving it up ---------------------


@dataclass(frozen=True, slots=True)
class Blocking:
    """`told_at`: when its server said so last."""

    blocked: BlockedMessage
    server: str
    told_at: datetime | None

    @property
    def mark(self) -> str:
        """Marks what a person sees: another attempt of it is another one."""
        return mark_of(self.blocked)


def mark_of(blocked: BlockedMessage) -> str:
    return f"{blocked.attempt}:{blocked.digest}"


def blocking_of(setting: LaunchSetting) -> Blocking | None:
    """What was told last, where several servers tell of one: the broker feeds one, so the others tell what
    was."""
    if not (setting.ordered and setting.enabled):
        return None
    return next((blocking for _pk, blocking in _blocked_of(Q(activation__setting=setting))), None)


def blocked_settings(most: int) -> list[tuple[LaunchSetting, Blocking]]:
    """Returns those of all settings, as `blocking_of` does; at most so many."""
    latest: dict[int, Blocking] = {}
    for pk, blocking in _blocked_of(Q(activation__setting__ordered=True, activation__setting__enabled=True)):
        latest.setdefault(pk, blocking)
    settings = LaunchSetting.objects.filter(pk__in=list(latest)[:most]).order_by("key")
    return [(setting, latest[setting.pk]) for setting in settings]


def _blocked_of(which: Q) -> Iterator[tuple[int, Blocking]]:
    """(setting, what one of its runs told), what was told last first."""
    runs = Run.objects.filter(which, closed_at=None, blocked__isnull=False)
    runs = runs.select_related("server", "activation")
    for run in runs.order_by(F("reported_at").desc(nulls_last=True), "-pk"):
        blocked = load(BlockedMessage, run.blocked)
        yield run.activation.setting_id, Blocking(blocked, run.server.name, run.reported_at)


def give_up_blocked(setting: LaunchSetting, seen: str, act: Act) -> None:
    """Wants the message with this mark among the dead letters. What is written down is the wish: whether it
    is dead its protocol and its dead letter tell. Raises Refused."""
    blocking = blocking_of(setting)
    if blocking is None or blocking.mark != seen:
        raise Refused(
            "over",
            gettext(
                "The message was not moved: it no longer blocks the subscription, or it has been "
                "retried in the meantime."
            ),
            gettext("Refresh the page and check the current state."),
        )
    digest, attempt = blocking.blocked.digest, blocking.blocked.attempt
    with transaction.atomic():
        LaunchSetting.objects.filter(pk=setting.pk).update(
            give_ups_asked=F("give_ups_asked") + 1, give_up_digest=digest, give_up_attempt=attempt
        )
        note(setting, "run", "", "given up", now=act.now, by=act.by, reason=said(act.reason))
        act.record(digest=digest, server=blocking.server)
        poll_after_commit(setting.pool.servers.values_list("name", flat=True))


# -- operations ----------------------------------------------------------------------------------------------


SEE_ACTIONS = "dlq.view_waitingaction"
KEPT_REASON = TextInput(_("Reason (saved with the messages)"), LONGEST_REASON, long=True)


def settings_seen(by: Any) -> QuerySet[LaunchSetting]:
    """Those whose messages this person may look at. Raises PermissionDenied for who may at none."""
    check_anywhere(by, rights.SEE, rights.WAITING)
    seen = settings_for(by, rights.SEE) | settings_for(by, rights.WAITING)
    return seen.select_related("destination", "pool")


def actions_seen(by: Any) -> QuerySet[WaitingAction]:
    """Returns those that this person may see; those of a setting that is gone with the permission to see all.
    Raises PermissionDenied for who may see none."""
    actions = MESSAGE_ACTIONS.rows()
    return actions if by.has_perm(SEE_ACTIONS) else actions.filter(setting__in=settings_seen(by))


class _Messages(Resource[LaunchSetting]):
    def crumbs(self, setting: LaunchSetting) -> list[tuple[Text, str]]:
        of_setting = (setting.key, link("setting", setting.key))
        return [(_("Settings"), link("settings")), of_setting, (self.title, self.url(setting))]


MESSAGES = _Messages(
    name="messages",
    rows=lambda: LaunchSetting.objects.filter(kind=SettingKind.MESSAGE),
    key="key",
    route="settings/<str:key>/waiting/",
    view="",
    visible=lambda by: settings_seen(by).filter(kind=SettingKind.MESSAGE),
    list_page="settings",
    page="waiting",
    title=_("Waiting messages"),
    setting_key=lambda setting: setting.key,
)
MESSAGE_ACTIONS = Resource(
    name="message_action",
    rows=lambda: WaitingAction.objects.select_related("setting__pool", "by"),
    key="pk",
    route="waiting-actions/<uuid:pk>/",
    view="",
    visible=actions_seen,
    list_page="settings",
    page="waiting_action",
    title=_("Action on waiting messages"),
    setting_key=lambda action: action.setting_key,
)


class OnMessages(Operation[LaunchSetting]):
    """`asks` is the title of its page; `after` says what it does, `undone` how that is undone."""

    on, permission = MESSAGES, SettingRight(rights.WAITING)
    inputs = {"reason": KEPT_REASON}
    kind: ClassVar[WaitingKind]
    asks: ClassVar[Text]
    after: ClassVar[Text]
    undone: ClassVar[Text]

    def run(self, setting: LaunchSetting, act: Act, *, chosen: Selection, **inputs: Any) -> Done:
        return Done("", request_action(setting, self.kind, chosen, act))


class RetryNow(OnMessages):
    code, label, kind = "messages.retry_now", _("Redeliver now"), WaitingKind.TRY_NOW
    asks, undone = _("Redeliver delayed messages now?"), _("This cannot be undone.")
    after = _(
        "The delay ends, and the agent receives the messages as soon as it can. Attempts "
        "still count: a message that fails on its last attempt goes to the DLQ."
    )


class DeadLetterNow(OnMessages):
    code, label, icon, tone = "messages.dead_letter", _("Move to DLQ"), "letter", "danger"
    kind, asks = WaitingKind.TO_DLQ, _("Move messages to the DLQ now?")
    after = _(
        "They go to the DLQ as if their attempts were exhausted, but without a failure. The "
        "DLQ shows who moved them, and why."
    )
    undone = _("You can replay them from the DLQ like any other messages.")


class HoldMessages(OnMessages):
    code, label, icon, kind = "messages.hold", _("Hold"), "pause", WaitingKind.HOLD
    asks, undone = _("Hold messages?"), _("You can release them later.")
    after = _(
        "They wait outside the subscription, and no agent receives them until someone "
        "releases them. Newer messages are processed before them."
    )


class ReleaseMessages(OnMessages):
    code, label, icon, kind = "messages.release", _("Release"), "back", WaitingKind.RELEASE
    asks = _("Release messages on hold?")
    after = _(
        "They go only to this subscription, to the end of its queue, with no delay and with "
        "the full number of attempts."
    )
    undone = _("You can hold the messages again while they wait.")


BY_KIND: dict[str, type[OnMessages]] = {
    each.kind: each for each in (RetryNow, DeadLetterNow, HoldMessages, ReleaseMessages)
}


class GiveUpBlocked(Operation[LaunchSetting]):
    """Moves the blocking message to the dead-letter queue. `seen` is the message and attempt that the page
    has shown: only this one is confirmed."""

    code, label = "messages.give_up_blocked", _("Move the blocking message to the DLQ")
    icon, tone = "letter", "danger"
    on, permission, address = MESSAGES, SettingRight(rights.WAITING), f"{MESSAGES.route}give-up/"
    inputs = {"seen": Seen(), "reason": REASON_NEEDED}

    def question(self, setting: LaunchSetting, by: Any, **named: Any) -> Question:
        title = gettext("Move the first message for %(key)s to the DLQ?") % {"key": setting.key}
        blocking = blocking_of(setting)
        if blocking is None:
            nothing = gettext("No message is blocking the subscription of %(key)s") % {"key": setting.key}
            return Question(title, refusal=Refused("over", nothing))
        blocked = blocking.blocked
        facts = {"message": blocked.key, "attempt": blocked.attempt, "server": blocking.server}
        which = gettext("%(message)s: attempt %(attempt)s failed on %(server)s.") % facts
        becomes = _(
            "The message goes to the setting's DLQ, and processing continues with the next one. A "
            "replay puts the dead-lettered message at the end of the queue."
        )
        late = _("If a retry starts before the server receives this request, the message is not moved.")
        seen, button = {"seen": blocking.mark}, _("Move to DLQ")
        return Question(title, [which, becomes, late], initial=seen, button=button)

    def run(self, setting: LaunchSetting, act: Act, *, seen: str, **inputs: Any) -> Done:
        give_up_blocked(setting, seen, act)
        return Done(gettext("The server is moving the message to the DLQ: %(key)s") % {"key": setting.key})


@dataclass(frozen=True, slots=True)
class _MayStop:
    """Says who may ask for such an action; of one whose setting is gone there is nothing to stop."""

    def why_not(self, user: Any, action: WaitingAction) -> str:
        return why_not(user, rights.WAITING, action.setting) if action.setting else ""


class CancelAction(Operation[WaitingAction]):
    """Cancels the action after the messages in progress; completed messages stay completed."""

    code, label, icon, tone = "message_action.cancel", _("Stop"), "off", "danger"
    on, permission, immediate = MESSAGE_ACTIONS, _MayStop(), True
    address = f"{MESSAGE_ACTIONS.route}stop/"

    def refusal(self, action: WaitingAction, now: datetime) -> Refused | None:
        return None if action.setting else Refused("over", gettext("The setting was deleted."))

    def run(self, action: WaitingAction, act: Act, **inputs: Any) -> Done:
        if refused := self.refusal(action, act.now):
            raise refused
        stop_action(action, act)
        return Done(
            _("The action stops after the current messages. Completed changes are not undone."), action
        )
