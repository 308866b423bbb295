"""Serializers that keep the rules of the model: the API refuses exactly what the form of the admin refuses.
Reasons: their text, their code and their parameters."""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from django.core.exceptions import ValidationError as ModelError
from django.db.models import ManyToManyField, Model
from django.utils.functional import cached_property
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request

from console.reasons import Reason
from console.rest.lists import KeysetPages

M = TypeVar("M", bound=Model)


class BodySerializer(serializers.Serializer[Any]):
    """The optional body of an action. Unknown names are errors, so that a misspelt field is never ignored."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping) and (unknown := sorted(set(data) - set(self.fields))):
            raise serializers.ValidationError({unknown[0]: _no_such(self.fields)})
        return super().to_internal_value(data)


class QuerySerializer(serializers.Serializer[Any]):
    """Filters of a list in pages by key. Unknown names are errors, so that a misspelt filter never matches
    everything."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        known = {*self.fields, KeysetPages.cursor_query_param, KeysetPages.page_size_query_param, "format"}
        if unknown := sorted(set(self.initial_data) - known):
            raise serializers.ValidationError(
                {unknown[0]: f"Unknown filter; known filters: {sorted(self.fields)}."}
            )
        return attrs


class NoBody(BodySerializer):
    """No body, or an empty object."""


def check_no_body(request: Request) -> None:
    """Raises ValidationError."""
    NoBody(data=request.data).is_valid(raise_exception=True)


class CheckedModelSerializer(serializers.ModelSerializer[M]):
    """Checks the whole object as it would be stored; unknown fields are errors."""

    @cached_property
    def _readable_fields(self) -> list[Any]:
        """The same for each row of a list: REST framework looks through them for each."""
        return list(super()._readable_fields)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        self._refuse_unknown()
        model: type[M] = self.Meta.model
        values = {name: value for name, value in attrs.items() if not _is_many(model, name)}
        if self.instance is None:
            future = model(**values)
        else:
            future = model.objects.get(pk=self.instance.pk)  # type: ignore[attr-defined]  # M is any model
            for name, value in values.items():
                setattr(future, name, value)
        try:
            future.clean_fields(exclude=self._left_out(model))
            future.clean()
        except ModelError as error:
            raise serializers.ValidationError(serializers.as_serializer_error(error)) from error
        return attrs

    def _left_out(self, model: type[M]) -> set[str]:
        """Leaves out what nobody chooses here."""
        chosen = {field.source for field in self.fields.values() if not field.read_only}
        return {field.name for field in model._meta.concrete_fields} - chosen

    def _refuse_unknown(self) -> None:
        writable = {name for name, field in self.fields.items() if not field.read_only}
        given = set(self.initial_data) if isinstance(self.initial_data, dict) else set()
        if unknown := sorted(given - set(self.fields)):
            raise serializers.ValidationError({unknown[0]: _no_such(writable)})
        if fixed := sorted(given - writable):
            raise serializers.ValidationError({fixed[0]: "This field is read-only."})


def _no_such(fields: Iterable[str]) -> str:
    names = sorted(fields)
    return f"Unknown field; known fields: {names}." if names else "Unknown field: this request has no fields."


def _is_many(model: type[Model], name: str) -> bool:
    return isinstance(model._meta.get_field(name), ManyToManyField)


class ReasonText(serializers.CharField):
    def __init__(self, **options: Any) -> None:
        super().__init__(read_only=True, **options)


class ReasonCode(serializers.CharField):
    """Empty where there is no reason; `said` is a person's own words."""

    def __init__(self, source: str) -> None:
        super().__init__(read_only=True, source=f"{source}.code")


@extend_schema_field(OpenApiTypes.OBJECT)
class ReasonParams(serializers.Field[Reason, Any, dict[str, Any], Any]):
    def __init__(self, source: str) -> None:
        super().__init__(read_only=True, source=source)

    def to_representation(self, value: Reason) -> dict[str, Any]:
        return value.params_as_json()
