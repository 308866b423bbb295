"""Bounds of alerts that differ from the built-in ones."""

from typing import Any

from django import forms
from django.contrib import admin
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.alerts.kinds import Kind, every_kind, kind_of
from agents.models import AlertRule
from console.audit.forms import RecordedAdmin


def defaults_of(kind: Kind) -> str:
    """What is built in, in one line."""
    limits = kind.limits
    return _("%(unit)s: opens at %(upper)s after %(open)s s, closes below %(lower)s after %(close)s s") % {
        "unit": kind.unit,
        "upper": f"{limits.upper:g}",
        "lower": f"{limits.lower:g}",
        "open": f"{limits.open_after.total_seconds():g}",
        "close": f"{limits.close_after.total_seconds():g}",
    }


class AlertRuleForm(forms.ModelForm):
    kind = forms.ChoiceField(label=gettext_lazy("Kind"))

    class Meta:
        model = AlertRule
        fields = ("kind", "pool", "watched", "upper", "lower", "open_after_seconds", "close_after_seconds")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        kinds = self.fields.get("kind")
        if isinstance(kinds, forms.ChoiceField):
            kinds.choices = [(kind.name, kind.label) for kind in every_kind()]


@admin.register(AlertRule)
class AlertRuleAdmin(RecordedAdmin, admin.ModelAdmin):
    form = AlertRuleForm
    list_display = (
        "kind_label",
        "pool",
        "watched",
        "upper",
        "lower",
        "open_after_seconds",
        "close_after_seconds",
    )
    list_select_related = ("pool",)
    list_filter = ("pool",)
    list_per_page = 50
    readonly_fields = ("built_in",)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "kind",
                    "pool",
                    "watched",
                    "upper",
                    "lower",
                    "open_after_seconds",
                    "close_after_seconds",
                ),
                "description": gettext_lazy(
                    "Without a pool it holds for the whole site. An empty field: as the rule of the site "
                    "says, else as "
                    "built in."
                ),
            },
        ),
        (gettext_lazy("Built in"), {"fields": ("built_in",)}),
    )

    @admin.display(description=gettext_lazy("kind"), ordering="kind")
    def kind_label(self, obj: AlertRule) -> str:
        kind = kind_of(obj.kind)
        return str(kind.label) if kind else obj.kind

    @admin.display(description=gettext_lazy("Bounds"))
    def built_in(self, obj: AlertRule | None) -> SafeString:
        rows = [(kind.label, defaults_of(kind)) for kind in every_kind()]
        return format_html_join("", "<p>{}: {}</p>", rows)
