"""A reason over REST: its text in the language of whoever asks, its code and its parameters."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from console.reasons import Reason


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
