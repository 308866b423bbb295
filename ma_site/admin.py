"""Forms of other packages' rows, where theirs do not fit this site."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.forms import ModelMultipleChoiceField
from django.utils.translation import gettext as _

admin.site.unregister([Group, User])


def permission_words(permission: Permission) -> str:
    """The name that the database keeps in English, in the reader's language."""
    kind = permission.content_type.model_class()
    action, _separator, model_name = permission.codename.partition("_")
    if (
        kind is not None
        and model_name == kind._meta.model_name
        and action in ("add", "change", "delete", "view")
    ):
        words = {
            "add": _("Can add %(kind)s"),
            "change": _("Can change %(kind)s"),
            "delete": _("Can delete %(kind)s"),
            "view": _("Can view %(kind)s"),
        }
        return words[action] % {"kind": kind._meta.verbose_name_plural}
    return _(permission.name)


class PermissionField(ModelMultipleChoiceField):
    def label_from_instance(self, obj: Permission) -> str:
        return f"{obj.content_type} | {permission_words(obj)}"


class InWords:
    """Permissions by their words."""

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **options: Any) -> Any:
        if db_field.remote_field.model is Permission:
            options["form_class"] = PermissionField
        return super().formfield_for_manytomany(db_field, request, **options)  # type: ignore[misc]  # a mixin of admins


@admin.register(Group)
class GroupInWords(InWords, GroupAdmin):
    pass


@admin.register(User)
class UserInWords(InWords, UserAdmin):
    pass
