"""Forms of other packages' rows, where theirs do not fit this site."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.forms import AdminPasswordChangeForm
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.views import PasswordChangeView
from django.forms import ModelMultipleChoiceField
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_noop

from console.audit.forms import RecordedAdmin
from console.audit.saves import saving
from console.ui.errors import permission_words

admin.site.unregister([Group, User])


class PermissionField(ModelMultipleChoiceField):
    def label_from_instance(self, obj: Permission) -> str:
        name = f"{obj.content_type.app_label}.{obj.codename}"
        words = permission_words(name)
        return f"{obj.content_type} | {gettext(obj.name) if words == name else words}"


class InWords:
    """Permissions by their words."""

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **options: Any) -> Any:
        if db_field.remote_field.model is Permission:
            options["form_class"] = PermissionField
        return super().formfield_for_manytomany(db_field, request, **options)  # type: ignore[misc]  # a mixin of admins


@admin.register(Group)
class GroupInWords(RecordedAdmin, InWords, GroupAdmin):
    pass


@admin.register(User)
class UserInWords(RecordedAdmin, InWords, UserAdmin):
    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        with self.attempting("password", request, id):
            person = self.get_object(request, unquote(id))
            if request.method != "POST" or person is None:
                return super().user_change_password(request, id, form_url)
            with saving(person, request.user, verb="password"):
                return super().user_change_password(request, id, form_url)


class PasswordChange(PasswordChangeView):
    """A person's own. The old one is checked before the transaction: that takes long."""

    form_class = AdminPasswordChangeForm

    def form_valid(self, form: Any) -> HttpResponse:
        with saving(form.user, form.user, verb="password"):
            return super().form_valid(form)


# -- texts of the admin for Russian, where a name has the nominative only ------------------------------------


TEXTS = (
    gettext_noop("Add %s"),
    gettext_noop("Change %s"),
    gettext_noop("View %s"),
    gettext_noop("Select %s"),
    gettext_noop("Select %s to change"),
    gettext_noop("Select %s to view"),
    gettext_noop("Add %(name)s"),
)
