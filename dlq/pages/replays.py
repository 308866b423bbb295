"""The list of replays: newest first, filtered, each with what became of its letters."""

import django_filters
from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_safe

from console.filters import SpanFilter
from console.lists.keyset import keyset_page
from console.ui.page import page
from dlq.models import UNFINISHED_JOBS, Action, JobState, ReplayJob
from dlq.pages import replay_words as words
from dlq.pages.shown import JOBS
from dlq.replay.operations import jobs_for

UNFINISHED = "unfinished"


class ReplayFilter(django_filters.FilterSet):
    setting = django_filters.CharFilter(
        field_name="setting_key", label=gettext_lazy("Setting"), max_length=61, widget=forms.TextInput()
    )
    action = django_filters.ChoiceFilter(
        choices=Action.choices, label=gettext_lazy("What"), empty_label=gettext_lazy("all")
    )
    state = django_filters.ChoiceFilter(
        choices=[(UNFINISHED, gettext_lazy("not over yet")), *JobState.choices],
        label=gettext_lazy("State"),
        empty_label=gettext_lazy("all"),
        method="in_state",
    )
    by = django_filters.CharFilter(field_name="by__username", label=gettext_lazy("By"), max_length=150)
    span = SpanFilter(field_name="created_at")
    quiet = ()

    class Meta:
        model = ReplayJob
        fields: list[str] = []

    def in_state(self, rows: QuerySet[ReplayJob], name: str, value: str) -> QuerySet[ReplayJob]:
        return rows.filter(state__in=UNFINISHED_JOBS) if value == UNFINISHED else rows.filter(state=value)


@require_safe
def replay_list(request: HttpRequest) -> HttpResponseBase:
    rows = jobs_for(request.user).order_by("-created_at", "-id")
    filters = ReplayFilter(request.GET, rows)
    listed = keyset_page(request, filters.qs, "created_at")
    return page(
        request,
        "dlq/replays.html",
        title=_("Replays"),
        section="replays",
        filters=filters,
        filtered=any(value for name, value in request.GET.items() if name in filters.filters),
        rows=[(job, JOBS[job.state], words.bars(job, words.counts_of(job))) for job in listed.rows],
        columns=("given_back", "handled", "failed_again", "dead_again", "waiting"),
        listed=listed,
        told="",
    )
