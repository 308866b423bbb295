"""Activations with their runs, and the history of settings: to look at."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from agents.models import Activation, Run, StateChange
from agents.pages.history import state_word, subject_word
from agents.reasons import problems_of
from console.admin import BoundedPaginator, ReadOnlyAdmin, SinceFilter, StartedFilter


class RunInline(admin.TabularInline):
    model = Run
    extra = 0
    max_num = 0
    can_delete = False
    fields = ("server", "epoch", "wanted", "state", "handled", "failed", "temporary", "restarts", "reported")
    readonly_fields = fields

    @admin.display(description=_("problems"))
    def reported(self, run: Run) -> str:
        return "; ".join(map(str, problems_of(run))) or "—"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Activation)
class ActivationAdmin(ReadOnlyAdmin):
    list_display = ("id", "setting", "state", "started_by", "started_at", "ended_at", "reason")
    list_select_related = ("setting", "started_by")
    list_filter = ("state", StartedFilter, "setting")
    paginator = BoundedPaginator
    ordering = ("-started_at", "-id")
    inlines = (RunInline,)


class SubjectFilter(admin.SimpleListFilter):
    title = _("what")
    parameter_name = "what"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [
            (what, subject_word(what)) for what in ("setting", "activation", "run", "provision", "policy")
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet) -> QuerySet:
        return queryset.filter(what=self.value()) if self.value() else queryset


@admin.register(StateChange)
class StateChangeAdmin(ReadOnlyAdmin):
    list_display = ("at", "setting", "subject", "before", "after", "server", "by", "why")
    fields = list_display
    list_select_related = ("setting", "server", "by")
    list_filter = (SubjectFilter, SinceFilter, "setting")
    paginator = BoundedPaginator

    @admin.display(description=_("what"), ordering="what")
    def subject(self, change: StateChange) -> str:
        return subject_word(change.what)

    @admin.display(description=_("from"), ordering="old")
    def before(self, change: StateChange) -> str:
        return state_word(change.what, change.old)

    @admin.display(description=_("to"), ordering="new")
    def after(self, change: StateChange) -> str:
        return state_word(change.what, change.new)

    @admin.display(description=_("reason"))
    def why(self, change: StateChange) -> str:
        return str(change.reason)
