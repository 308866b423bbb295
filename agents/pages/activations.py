"""Every activation of every setting, newest first: who started it and how it ended."""

import django_filters
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from agents.models import Activation, ActivationState, Trigger
from agents.pages.activation import VIEW
from agents.pages.failures_by_server import failures_by_server
from agents.pages.shown import ACTIVATIONS
from agents.pages.trips import setting_choices, setting_id
from console.filters import SpanFilter
from console.lists.keyset import keyset_page
from console.ui.page import needs, page


class ActivationFilter(django_filters.FilterSet):
    setting = django_filters.ChoiceFilter(
        choices=setting_choices,
        label=gettext_lazy("Setting"),
        empty_label=gettext_lazy("all"),
        method="of_setting",
    )
    state = django_filters.ChoiceFilter(
        choices=ActivationState.choices, label=gettext_lazy("State"), empty_label=gettext_lazy("all")
    )
    trigger = django_filters.ChoiceFilter(
        choices=Trigger.choices, label=gettext_lazy("Started through"), empty_label=gettext_lazy("all")
    )
    span = SpanFilter(field_name="started_at")
    quiet = ("trigger",)

    class Meta:
        model = Activation
        fields: list[str] = []

    def of_setting(self, rows: QuerySet[Activation], name: str, value: str) -> QuerySet[Activation]:
        return rows.filter(setting=setting_id(value))


@require_safe
@needs(VIEW)
def activation_list(request: HttpRequest) -> HttpResponseBase:
    rows = Activation.objects.select_related("setting", "started_by", "group_activation__group")
    filters = ActivationFilter(request.GET, rows.order_by("-started_at", "-id"))
    listed = keyset_page(request, filters.qs, "started_at")
    failed = failures_by_server(listed.rows)
    return page(
        request,
        "agents/activations.html",
        title=_("Activations"),
        section="activations",
        filters=filters,
        filtered=any(value for name, value in request.GET.items() if name in filters.filters),
        listed=listed,
        rows=[
            (activation, ACTIVATIONS[activation.state], failed.get(activation.pk))
            for activation in listed.rows
        ],
        told="",
    )
