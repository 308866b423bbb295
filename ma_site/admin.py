"""Forms of other packages' rows, where theirs do not fit this site."""

from collections.abc import Collection, Iterator
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.contrib.admin.forms import AdminPasswordChangeForm
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.forms import AdminPasswordChangeForm as SetPasswordForm
from django.contrib.auth.forms import SetUnusablePasswordMixin
from django.contrib.auth.models import Group, Permission, User
from django.contrib.auth.views import PasswordChangeView
from django.db.models import Model
from django.forms import ModelMultipleChoiceField
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy, gettext_noop

from console.audit.forms import RecordedAdmin
from console.audit.saves import saving
from console.ui.errors import permission_words

admin.site.unregister([Group, User])


class PermissionField(ModelMultipleChoiceField):
    def label_from_instance(self, obj: Permission) -> str:
        name = f"{obj.content_type.app_label}.{obj.codename}"
        words = permission_words(name)
        told = gettext(obj.name) if words == name else words
        return f"{obj.content_type} | {told}"


def joining_models() -> Iterator[type[Model]]:
    """Those without a name for people: their rows only join two others."""
    for model in apps.get_models():
        for field in model._meta.local_many_to_many:
            through: Any = field.remote_field.through
            if through._meta.auto_created:
                yield through


class InWords:
    """Permissions by their words; of what goes with a row what people know."""

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        to_delete, counts, *rest = super().get_deleted_objects(objs, request)  # type: ignore[misc]  # as below
        names = {str(model._meta.verbose_name) for model in joining_models()}
        plurals = {str(model._meta.verbose_name_plural) for model in joining_models()}
        kept = {plural: count for plural, count in counts.items() if str(plural) not in plurals}
        return _without(to_delete, names), kept, *rest

    def formfield_for_manytomany(self, db_field: Any, request: Any = None, **options: Any) -> Any:
        if db_field.remote_field.model is Permission:
            options["form_class"] = PermissionField
        return super().formfield_for_manytomany(db_field, request, **options)  # type: ignore[misc]  # a mixin of admins


def _without(listed: list[Any], names: Collection[str]) -> list[Any]:
    """What goes is a list of texts, each of which may be followed by a list of what goes with it."""
    kept = [
        _without(each, names) if isinstance(each, list) else each
        for each in listed
        if isinstance(each, list) or str(each).partition(":")[0].lower() not in map(str.lower, names)
    ]
    return [each for each in kept if each]


class PasswordForm(SetPasswordForm):
    """Django puts the help together when it is loaded, so in English."""

    usable_password_help_text = ""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if usable := self.fields.get("usable_password"):
            warning = gettext_lazy("The current password of this user is lost when you save.")
            usable.help_text = format_html(
                '{}<ul id="id_unusable_warning" class="messagelist"><li class="warning">{}</li></ul>',
                SetUnusablePasswordMixin.usable_password_help_text,
                warning,
            )


@admin.register(Group)
class GroupInWords(RecordedAdmin, InWords, GroupAdmin):
    pass


@admin.register(User)
class UserInWords(RecordedAdmin, InWords, UserAdmin):
    change_password_form = PasswordForm
    # Facts; and Django's fields of two parts have no label for each.
    readonly_fields = ("last_login", "date_joined")

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
    gettext_noop("may"),  # of a date, as `31 may`
    gettext_noop("Add %s"),
    gettext_noop("Change %s"),
    gettext_noop("View %s"),
    gettext_noop("Select %s"),
    gettext_noop("Select %s to change"),
    gettext_noop("Select %s to view"),
    gettext_noop("Add %(name)s"),
    gettext_noop(
        'Are you sure you want to delete the %(object_name)s "%(escaped_object)s"? All of the following '
        "related items will be deleted:"
    ),
    gettext_noop(
        "Whether the user will be able to authenticate using a password or not. If disabled, they may still "
        "be able to authenticate using other backends, such as Single Sign-On or LDAP."
    ),
)
