"""Forms and REST routes by which people save rows: what is saved is in the audit, and what is refused. What
saves a row otherwise asks `console.audit.saves` itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.contrib.admin.utils import unquote
from django.db import models, transaction
from django.http import HttpRequest
from rest_framework.response import Response

from console.audit.log import attempt, mark_kept, record_refused
from console.audit.refusals import LOOKS, Audited
from console.audit.saves import RowKind, Saving, record_deletion, saving

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin

    Admin = ModelAdmin[Any]
else:
    Admin = object


class RecordedAdmin(Admin):
    """First among the bases of a form of the admin. A subclass saves in `save_model` as ever: all of it lies
    between `save_form` and the end of `save_related`, in the transaction of the admin's view."""

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> Any:
        with self.attempting("create", request):
            return super().add_view(request, form_url, extra_context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> Any:
        with self.attempting("change", request, object_id):
            return super().change_view(request, object_id, form_url, extra_context)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        with self.attempting("delete", request, object_id):
            return super().delete_view(request, object_id, extra_context)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """The only thing that is done from there is to delete the selected rows."""
        with self.attempting("delete", request):
            return super().changelist_view(request, extra_context)

    @contextmanager
    def attempting(self, verb: str, request: HttpRequest, object_id: str = "") -> Iterator[None]:
        """Outside of the transaction: what is refused leaves an entry, and a look none."""
        if request.method in LOOKS:
            yield
            return
        kind = RowKind.known[self.model]
        names: dict[str, Any] = {"action": kind.code(verb), "target": f"page:{request.path}"}
        if object_id and (row := self.get_object(request, unquote(object_id))):
            names = kind.names(row, verb)
        try:
            with attempt(**names, by=request.user):
                yield
        except self.model.DoesNotExist as gone:
            record_refused(**names, by=request.user, why="deleted meanwhile")
            mark_kept(gone)
            raise

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Any:
        form.saving = Saving(form.instance, request.user)
        return super().save_form(request, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        form.saving.end(even_unchanged=True)

    def delete_model(self, request: HttpRequest, obj: models.Model) -> None:
        record_deletion(obj, request.user)
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        with transaction.atomic():
            for row in queryset:
                record_deletion(row, request.user)
            super().delete_queryset(request, queryset)


class RecordedRows(Audited):
    """First among the bases of a view set. `store` saves the row of the serializer, which it has checked."""

    VERBS = {"create": "create", "partial_update": "change", "destroy": "delete"}
    queryset: Any = None
    action: Any = None

    def handle_exception(self, exc: Exception) -> Response:
        if verb := self.VERBS.get(self.action):
            self.audit_action = RowKind.known[self.queryset.model].code(verb)
        return super().handle_exception(exc)

    def perform_create(self, serializer: Any) -> None:
        self._save(serializer)

    def perform_update(self, serializer: Any) -> None:
        self._save(serializer)

    def perform_destroy(self, instance: Any) -> None:
        with transaction.atomic():
            record_deletion(instance, self.request.user)
            instance.delete()

    def _save(self, serializer: Any) -> None:
        with saving(serializer.instance, self.request.user, even_unchanged=True) as save:
            self.store(serializer, save)
            save.row = serializer.instance

    def store(self, serializer: Any, save: Saving) -> None:
        """Stores in the transaction of the entry. Sets `serializer.instance`."""
        serializer.save()
