"""Scheduled groups with their members in order, and what groups of people may do in a pool."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponseRedirect
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from agents.admin.schedule_form import FIELDS as SCHEDULE_FIELDS
from agents.admin.schedule_form import ScheduleForm
from agents.groups.members import check_members, save_members
from agents.models import LaunchSetting, PoolGrant, ScheduledGroup
from agents.pools.rights import may_anywhere, may_group, why_not_group
from console.audit.forms import RecordedAdmin
from console.ui.page import link

FACTS = ("enabled", "state_since", "disabled_reason", "switched_off_by")


class GroupForm(ScheduleForm):
    """`user` is set by the admin: the right is needed for every setting that shall be a member."""

    user: Any = None
    members = forms.CharField(
        label=_("Members in order"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 8, "cols": 40, "spellcheck": "false"}),
        help_text=_(
            "Keys of scheduled settings, one per line. Each setting starts after the previous one "
            "succeeds. Move lines to change the order. A group run in progress keeps its order."
        ),
    )

    class Meta:
        help_texts = {"name": _("Cannot be changed later.")}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.pk is not None:
            keys = self.instance.members.order_by("position").values_list("setting__key", flat=True)
            self.initial.setdefault("members", "\n".join(keys))

    def clean_members(self) -> list[str]:
        keys = self.cleaned_data["members"].split()
        try:
            check_members(self.instance, keys)
        except ValidationError as error:
            raise ValidationError(error.message_dict["members"]) from error
        wanted = list(LaunchSetting.objects.filter(key__in=keys))
        # One without members is nobody's but theirs who may edit every setting: who made it could not touch
        # it again.
        if refused := why_not_group(self.user, "edit", self.instance, wanted):
            raise ValidationError(refused)
        return list(keys)


@admin.register(ScheduledGroup)
class ScheduledGroupAdmin(RecordedAdmin, admin.ModelAdmin):
    form = GroupForm
    list_display = ("name", "enabled", "state_since", "description")
    search_fields = ("name", "description")
    list_per_page = 50
    readonly_fields = FACTS

    class Media:
        js = ("ma/setting-form.js",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return may_anywhere(request.user, "edit")

    def has_change_permission(self, request: HttpRequest, obj: ScheduledGroup | None = None) -> bool:
        return may_anywhere(request.user, "edit") if obj is None else may_group(request.user, "edit", obj)

    def has_delete_permission(self, request: HttpRequest, obj: ScheduledGroup | None = None) -> bool:
        return obj is not None and may_group(request.user, "edit", obj)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        form: Any = super().get_form(request, obj, change, **options)
        form.user = request.user
        return form

    def get_readonly_fields(self, request: HttpRequest, obj: ScheduledGroup | None = None) -> tuple[str, ...]:
        return ("name", *FACTS) if obj else FACTS

    def get_fieldsets(self, request: HttpRequest, obj: ScheduledGroup | None = None) -> Any:
        if obj and not self.has_change_permission(request, obj):
            return ((None, {"fields": ("name", "description")}), (_("State"), {"fields": FACTS}))
        shown: Any = (
            (None, {"fields": ("name", "description", "members")}),
            (_("When"), {"fields": SCHEDULE_FIELDS}),
        )
        return (*shown, (_("State"), {"fields": FACTS})) if obj else shown

    @admin.display(description=_("disabled by"))
    def switched_off_by(self, obj: ScheduledGroup) -> str:
        return str(obj.disabled_by or "—")

    def save_model(self, request: HttpRequest, obj: ScheduledGroup, form: Any, change: bool) -> None:
        """All in the transaction of the admin's view. Whether it is enabled is written by others."""
        if change:  # so that nobody deletes it meanwhile
            ScheduledGroup.objects.select_for_update(no_key=True).get(pk=obj.pk)
        obj.save(update_fields=["description"] if change else None)
        save_members(obj, form.cleaned_data["members"], request.user, timezone.now())
        form.save_schedule(request.user)

    def response_post_save_add(self, request: HttpRequest, obj: ScheduledGroup) -> HttpResponseRedirect:
        """Leads to its page: there it is enabled."""
        return HttpResponseRedirect(link("group", obj.name))

    def response_post_save_change(self, request: HttpRequest, obj: ScheduledGroup) -> HttpResponseRedirect:
        return HttpResponseRedirect(link("group", obj.name))

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Asked and done as on its own page."""
        group = self.get_object(request, object_id)
        if group is None or not self.has_delete_permission(request, group):
            return super().delete_view(request, object_id, extra_context)
        return HttpResponseRedirect(link("group_delete", group.name))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> Any:
        try:
            return super().change_view(request, object_id, form_url, extra_context)
        except ScheduledGroup.DoesNotExist:
            return self._gone(request)

    def _gone(self, request: HttpRequest) -> HttpResponseRedirect:
        messages.error(request, _("This object has already been deleted."))
        return HttpResponseRedirect(link("agents_scheduledgroup_changelist"))


@admin.register(PoolGrant)
class PoolGrantAdmin(RecordedAdmin, admin.ModelAdmin):
    """For administrators only: grants can give any permission."""

    list_display = ("pool", "group", "may_edit", "may_enable", "may_disable", "may_run", "may_stop")
    list_select_related = ("pool", "group")
    list_filter = ("pool", "group")
    list_per_page = 50
    fieldsets = (
        (
            None,
            {
                "fields": ("pool", "group"),
                "description": _(
                    "Permissions that this user group has for the settings in this pool. Site-wide "
                    "permissions apply as well."
                ),
            },
        ),
        (
            _("Allowed"),
            {"fields": ("may_edit", "may_enable", "may_disable", "may_run", "may_stop", "may_answer")},
        ),
        (
            _("Allowed actions on dead letters and waiting messages"),
            {
                "fields": (
                    "may_see_letters",
                    "may_see_masked",
                    "may_give_back",
                    "may_edit_letters",
                    "may_redirect",
                    "may_redirect_elsewhere",
                    "may_discard",
                    "may_handle_waiting",
                    "may_import_letters",
                )
            },
        ),
    )
