"""Activations with their runs, and the history of settings: to look at."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from agents.admin.readonly import ReadOnlyAdmin
from agents.models import Activation, Run, StateChange


class RunInline(admin.TabularInline):
    model = Run
    extra = 0
    max_num = 0
    can_delete = False
    fields = ("server", "epoch", "wanted", "state", "handled", "failed", "temporary", "restarts", "problem")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Activation)
class ActivationAdmin(ReadOnlyAdmin):
    list_display = ("id", "setting", "state", "started_by", "started_at", "ended_at", "reason")
    list_select_related = ("setting", "started_by")
    list_filter = ("state", "setting")
    date_hierarchy = "started_at"
    inlines = (RunInline,)


@admin.register(StateChange)
class StateChangeAdmin(ReadOnlyAdmin):
    list_display = ("at", "setting", "what", "old", "new", "server", "by", "reason")
    list_select_related = ("setting", "server", "by")
    list_filter = ("what", "setting")
    date_hierarchy = "at"
