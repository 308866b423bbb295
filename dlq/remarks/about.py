"""What a remark is about, and who may make one."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from agents.models import LaunchSetting
from agents.services.rights import may, missing
from console.audit.log import mark_kept, record
from console.audit.models import AuditResult
from contract.text import storable
from dlq import rights

LONGEST = 4000
LONGEST_TICKET = 200


class RemarkRefused(Exception):
    """Nothing was written down. `code` is a stable word: `not_allowed`, `empty`, `nothing_named`, `exists`,
    `ended`, `past`, `no_person`."""

    def __init__(self, code: str, reason: str, what_to_do: str = "") -> None:
        super().__init__(reason)
        self.code, self.reason, self.what_to_do = code, reason, what_to_do


@dataclass(frozen=True, slots=True)
class About:
    """Of the setting `setting_key`: the case `message_key`, the group `fingerprint`, or (both empty) all of
    it."""

    setting_key: str
    fingerprint: str = ""
    message_key: str = ""

    @property
    def named(self) -> dict[str, str]:
        """The columns of a Remark."""
        return {
            "setting_key": self.setting_key,
            "fingerprint": self.fingerprint,
            "message_key": self.message_key,
        }

    @property
    def target(self) -> str:
        """As the audit names it."""
        part = f"case:{self.message_key}" if self.message_key else f"fingerprint:{self.fingerprint}"
        return f"setting:{self.setting_key}" + (f" {part}" if self.message_key or self.fingerprint else "")


def may_remark(user: Any, setting_key: str) -> bool:
    return _may(user, rights.GIVE_BACK, setting_key)


def may_read(user: Any, setting_key: str) -> bool:
    return _may(user, rights.SEE, setting_key)


def _may(user: Any, action: str, setting_key: str) -> bool:
    """Of a setting that is gone, or of letters that have none: by the permission alone."""
    setting = LaunchSetting.objects.filter(key=setting_key).first()
    permissions = {rights.SEE: "dlq.view_deadletter", rights.GIVE_BACK: "dlq.give_back"}
    return may(user, action, setting) if setting else bool(user.has_perm(permissions[action]))


def why_not_remark(user: Any, setting_key: str) -> str:
    """Beside what cannot be pressed; empty when this person may."""
    if may_remark(user, setting_key):
        return ""
    setting = LaunchSetting.objects.select_related("pool").filter(key=setting_key).first()
    if setting:
        return missing(rights.GIVE_BACK, setting.pool.name)
    return _("You may not do that. Ask for the permission “%(permission)s”.") % {
        "permission": _("Can give dead letters back to their setting")
    }


def check(action: str, about: About, by: Any, now: datetime) -> None:
    """That something is named and this person may; a refused attempt is audited. Raises RemarkRefused."""
    if not about.setting_key or (about.fingerprint and about.message_key):
        raise RemarkRefused(
            "nothing_named", _("Name a setting and, of it, one fingerprint or one message key.")
        )
    if may_read(by, about.setting_key) and may_remark(by, about.setting_key):
        return
    why = why_not_remark(by, about.setting_key) or _("You may not see these letters.")
    told(action, about, by, now, result=AuditResult.REFUSED, detail={"why": why})
    refused = RemarkRefused("not_allowed", why)
    mark_kept(refused)
    raise refused


def told(action: str, about: About, by: Any, now: datetime, **more: Any) -> None:
    record(action, by=by, now=now, target=about.target[:300], setting_key=about.setting_key[:61], **more)


def cleaned(text: str, longest: int = LONGEST) -> str:
    return storable(text).strip()[:longest]


def name_of(person: Any) -> str:
    return str(person.get_username()) if person is not None else ""
