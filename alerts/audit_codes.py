"""The rows of this app that people save, as entries of the audit name them."""

from django.utils.translation import gettext_lazy as _

from alerts.models import AlertRule, NoticeTarget
from alerts.sources import kind_of
from console.audit import text
from console.audit.saves import RowKind
from console.ui.text import masked


def _kind(name: str) -> text.Text:
    kind = kind_of(name)
    return kind.label if kind else name


RowKind("alert_rule", AlertRule, _("Alert rules"), page="alerts_alertrule_change", about=("kind", "pool"),
        words={"kind": _kind})  # fmt: skip
RowKind("notice_target", NoticeTarget, _("Who is told of trips"), removed_by="notice_target.delete",
        about=("address",), shown={"address": masked},
        setting_key=lambda target: target.setting.key if target.setting else "")  # fmt: skip
