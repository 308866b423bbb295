"""Describes what people do with a delivery that waits for an answer: commit it, or roll it back."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.acknowledgements.answers import Answerer, NotAnswered, acknowledge, until_ended
from agents.models import WAITING_STATES, Acknowledgement, AcknowledgementState
from agents.pools.rights import why_not
from console.operations.operation import Act, Done, Operation, Question, Resource
from console.ui.page import Text, link
from contract.acknowledgements import Action


class _Acknowledgements(Resource[Acknowledgement]):
    """They have no page but their list."""

    def __post_init__(self) -> None:
        """Names no object that an entry of the audit could lead to."""

    def url(self, row: Acknowledgement) -> str:
        return link(self.list_page)

    def crumbs(self, row: Acknowledgement) -> list[tuple[Text, str]]:
        return [(self.title, self.url(row))]


ACKNOWLEDGEMENTS = _Acknowledgements(
    name="acknowledgement",
    rows=lambda: Acknowledgement.objects.select_related("setting__pool", "server"),
    key="pk",
    route="answers/<int:pk>/",
    view="agents.view_acknowledgement",
    list_page="answers",
    title=_("Awaiting acknowledgement"),
    section="activations",
    setting_key=lambda row: row.setting.key,
)


@dataclass(frozen=True, slots=True)
class _MayAnswer:
    def why_not(self, user: Any, row: Acknowledgement) -> str:
        return why_not(user, "answer", row.setting)


class _Answers(Operation[Acknowledgement]):
    on, permission = ACKNOWLEDGEMENTS, _MayAnswer()
    action: ClassVar[Action]
    asks: ClassVar[Text]
    explained: ClassVar[Text]

    def refusal(self, row: Acknowledgement, now: datetime) -> NotAnswered | None:
        if row.state == AcknowledgementState.OPEN:
            return None
        return NotAnswered(
            gettext("The delivery no longer awaits acknowledgement: %(what)s.")
            % {"what": row.get_state_display()}
        )

    def detail(self, row: Acknowledgement) -> dict[str, Any]:
        return {"server": row.server.name, "message": row.jms_message_id or row.message_key}

    def question(self, row: Acknowledgement, by: Any, **named: Any) -> Question:
        names = {
            "setting": row.setting.key,
            "server": row.server.name,
            "key": row.jms_message_id or row.message_key,
        }
        which = gettext("Setting %(setting)s, server %(server)s, message %(key)s.") % names
        return Question(
            self.asks, [which, self.explained, _("The first acknowledgement counts and cannot be undone.")]
        )

    def run(self, row: Acknowledgement, act: Act, **inputs: Any) -> Done:
        row = until_ended(acknowledge(row, self.action, Answerer(by=act.by), act.now, act.record))
        if row.state in WAITING_STATES:
            return Done(_("Acknowledged. The server has not reported the outcome yet."), row)
        state = row.get_state_display()
        return Done(f"{state}: {row.reason}" if row.reason else state, row)


class Commit(_Answers):
    """Acknowledges the message: it is processed."""

    code, label, icon = "acknowledgement.commit", _("Commit"), "ok"
    action, asks = Action.COMMIT, _("Commit this message?")
    explained = _("The message is permanently removed from the subscription, as after successful processing.")


class RollBack(_Answers):
    """Returns the message for redelivery; after the last attempt it is dead-lettered."""

    code, label, icon, tone = "acknowledgement.rollback", _("Roll back"), "back", "danger"
    action, asks = Action.ROLLBACK, _("Roll back this message?")
    explained = _(
        "The rollback counts as a failed attempt and gets its own failure protocol. The "
        "message is redelivered after the delay set for the destination. After the last "
        "attempt it is dead-lettered."
    )
