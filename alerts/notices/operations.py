"""Describes what people do with an address that is told of trips. The secret that signs a webhook is made
here and shown once."""

import secrets
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.pools.rights import may_in_pool, missing, why_not
from alerts.models import Channel, NoticeState, NoticeTarget
from alerts.notices.delivery import send_test
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
        if target.setting is not None:
            return why_not(user, "edit", target.setting)
        if target.pool is None or may_in_pool(user, "edit", target.pool.pk):
            return ""
        return missing("edit", target.pool.name)


class _OfTarget(Operation[NoticeTarget]):
    on, permission = TARGETS, _MayEdit()

    def detail(self, target: NoticeTarget) -> dict[str, Any]:
        return {"address": masked(target.address)}


class SendTest(_OfTarget):
    """Sends a test notification now and returns the result; `problem` holds the error."""

    code, label = "notice_target.test", _("Send test notification")

    def run(self, target: NoticeTarget, act: Act, **inputs: Any) -> Done:
        notice = send_test(target, act.by, act.now, partial(act.record, begun=True))
        facts = {"address": notice.address, "problem": notice.problem}
        if notice.state == NoticeState.SENT:
            return Done(gettext("Test notification delivered: %(address)s") % facts, notice)
        return Done(gettext("Test notification not delivered to %(address)s: %(problem)s") % facts, notice)


class RenewSecret(_OfTarget):
    """Creates a new secret, shown only once; the previous secret is no longer used."""

    code, label = "notice_target.renew_secret", _("Renew secret")

    def refusal(self, target: NoticeTarget, now: datetime) -> Refused | None:
        if target.channel == Channel.WEBHOOK:
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


def save_target(target: NoticeTarget) -> str:
    """The secret, if one was made now, else an empty text. `target` was validated."""
    made = ""
    if target.channel == Channel.WEBHOOK and not target.secret:
        made = target.secret = secrets.token_urlsafe(32)
    elif target.channel == Channel.EMAIL:
        target.secret = ""
    target.save()
    return made
