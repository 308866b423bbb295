from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AlertsConfig(AppConfig):
    name = "alerts"
    verbose_name = _("Alerts")

    def ready(self) -> None:
        from alerts import agents_hooks, metrics_hooks  # noqa: F401 - what apps below ask for

        declare_rows()


def declare_rows() -> None:
    """Declares the rows of this app that people save, as entries of the audit name them."""
    from alerts.models import AlertRule, NoticeTarget
    from alerts.sources import kind_of
    from console.audit.saves import RowKind
    from console.audit.text import Text
    from console.ui.text import masked

    def kind_words(name: str) -> Text:
        kind = kind_of(name)
        return kind.label if kind else name

    RowKind("alert_rule", AlertRule, _("Alert rules"), page="alerts_alertrule_change",
            about=("kind", "pool"), words={"kind": kind_words})  # fmt: skip
    RowKind("notice_target", NoticeTarget, _("Notification recipients"), removed_by="notice_target.delete",
            about=("address",), shown={"address": masked}, secret=("secret",),
            setting_key=lambda target: target.setting.key if target.setting else "")  # fmt: skip
