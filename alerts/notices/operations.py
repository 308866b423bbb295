"""Describes what people do with an address that is told of trips. The secret that signs a webhook is made
here and shown once."""

from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from alerts.models import SIGNED, Channel, Notice, NoticeState, NoticeTarget, is_secret
from alerts.notices.channels.webhooks import new_secret, new_standard_secret
from alerts.notices.delivery import send_test
from alerts.notices.recipients import ask_for_sending, why_not_edit
from console.operations.operation import Act, Done, Operation, Resource
from console.operations.refusals import Refused
from console.ui.text import masked

TARGETS = Resource(
    name="notice_target",
    rows=lambda: NoticeTarget.objects.select_related("setting__pool", "pool"),
    key="pk",
    route="notice-targets/<int:pk>/",
    view="alerts.view_noticetarget",
    list_page="alerts_noticetarget_changelist",
    page="alerts_noticetarget_change",
    title=_("Notification recipients"),
    setting_key=lambda target: target.setting.key if target.setting else "",
)


@dataclass(frozen=True, slots=True)
class _MayEdit:
    """Holds what it belongs to."""

    def why_not(self, user: Any, target: NoticeTarget) -> str:
        return why_not_edit(user, target)


class _OfTarget(Operation[NoticeTarget]):
    on, permission = TARGETS, _MayEdit()

    def detail(self, target: NoticeTarget) -> dict[str, Any]:
        return {"address": masked(target.address)}


class SendTest(_OfTarget):
    """Sends a test notification now and returns the result; `problem` holds the error."""

    code, label = "notice_target.test", _("Send test notification")

    def run(self, target: NoticeTarget, act: Act, **inputs: Any) -> Done:
        notice = send_test(target, act.by, act.now, partial(act.record, begun=True))
        secret = is_secret(notice.channel, notice.address)
        facts = {
            "address": masked(notice.address) if secret else notice.address,
            "problem": notice.problem,
        }
        if notice.state == NoticeState.SENT:
            return Done(gettext("Test notification delivered: %(address)s") % facts, notice)
        return Done(gettext("Test notification not delivered to %(address)s: %(problem)s") % facts, notice)


class RenewSecret(_OfTarget):
    """Creates a new secret, shown only once; the previous secret is no longer used."""

    code, label = "notice_target.renew_secret", _("Renew secret")

    def refusal(self, target: NoticeTarget, now: datetime) -> Refused | None:
        if target.channel in SIGNED:
            return None
        return Refused(
            "not_signed",
            gettext("Secret not renewed: only webhooks have a secret."),
            gettext("No action is needed."),
        )

    @transaction.atomic
    def run(self, target: NoticeTarget, act: Act, **inputs: Any) -> Done:
        target = TARGETS.rows().select_for_update(of=("self",)).get(pk=target.pk)
        if refused := self.refusal(target, act.now):
            raise refused
        target.secret = ""
        save_target(target)
        act.record()
        return Done(gettext("Secret renewed."), target)


class DeleteTarget(_OfTarget):
    """Deletes the target: it gets no more notifications."""

    code, label = "notice_target.delete", _("Delete recipient")

    @transaction.atomic
    def run(self, target: NoticeTarget, act: Act, **inputs: Any) -> Done:
        target = TARGETS.rows().select_for_update(of=("self",)).get(pk=target.pk)
        act.record()
        target.delete()
        return Done(gettext("Deleted: %(key)s") % {"key": target}, is_gone=True)


# -- what was sent -------------------------------------------------------------------------------------------

NOTICES = Resource(
    name="notice",
    rows=lambda: Notice.objects.select_related("target__setting__pool", "target__pool"),
    key="pk",
    route="notices/<int:pk>/",
    view="alerts.view_notice",
    list_page="notices",
    title=_("Notifications"),
    page="notice",
    setting_key=lambda notice: notice.target.setting.key if notice.target and notice.target.setting else "",
)


@dataclass(frozen=True, slots=True)
class _MayEditTarget:
    """Holds what the target of the notification belongs to; of a target that is gone, every setting."""

    def why_not(self, user: Any, notice: Notice) -> str:
        return why_not_edit(user, notice.target if notice.target is not None else NoticeTarget())


# What was decided, and can be sent once more.
ENDED = (NoticeState.SENT, NoticeState.FAILED, NoticeState.SKIPPED)


class ResendNotice(Operation[Notice]):
    """Sends the notification again, under the same id. It is pending until a worker has sent it."""

    code, label, icon, immediate = "notice.resend", _("Send again"), "run", True
    on, permission = NOTICES, _MayEditTarget()

    def detail(self, notice: Notice) -> dict[str, Any]:
        return {"address": masked(notice.address)}

    def refusal(self, notice: Notice, now: datetime) -> Refused | None:
        if notice.target is None:
            return Refused(
                "no_target",
                gettext("Not sent again: the recipient was deleted."),
                gettext("Add the recipient again. It will get new notifications only."),
            )
        if notice.state in ENDED:
            return None
        return Refused(
            "is_pending",
            gettext("Not sent again: the notification is still being sent."),
            gettext("No action is needed. The list shows the time of the next attempt."),
        )

    @transaction.atomic
    def run(self, notice: Notice, act: Act, **inputs: Any) -> Done:
        ended = Notice.objects.filter(pk=notice.pk, state__in=ENDED, target__isnull=False)
        again = {"state": NoticeState.PENDING, "attempts": 0, "held": False, "next_at": act.now}
        if ended.update(**again) != 1:
            notice = NOTICES.rows().get(pk=notice.pk)
            if refused := self.refusal(notice, act.now):
                raise refused
        act.record()
        transaction.on_commit(ask_for_sending, robust=True)
        notice.refresh_from_db()
        return Done(
            gettext("The notification will be sent again within a few seconds."), notice, to_list=True
        )


def save_target(target: NoticeTarget) -> str:
    """The secret, if one was made now, else an empty text. `target` was validated."""
    made = ""
    if target.channel in SIGNED and not target.secret:
        own = target.channel == Channel.WEBHOOK
        made = target.secret = new_secret() if own else new_standard_secret()
    elif target.channel not in (*SIGNED, Channel.PAGERDUTY):
        target.secret = ""
    target.save()
    return made
