"""/api/v1/metrics/series/: figures of a setting, a server, a setting on a server, or the installation over
time."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import LaunchSetting, Server
from console.rest.lists import asked_in
from console.rest.serializers import QuerySerializer
from contract.histogram import merged, quantile
from metrics.queries import Point, scope_of, series
from metrics.rules import HISTOGRAMS, PLAIN

DEFAULT_RANGE = timedelta(hours=1)
_NOTHING_BEFORE = datetime(2000, 1, 1, tzinfo=UTC)
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


class SeriesQuery(QuerySerializer):
    setting = serializers.CharField(required=False, max_length=200, help_text="Key of a setting.")
    server = serializers.CharField(required=False, max_length=63, help_text="Name of a server.")
    since = serializers.DateTimeField(required=False, help_text="Default: one hour before `until`.")
    until = serializers.DateTimeField(required=False, help_text="Default: now.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "since" in attrs and attrs["since"] > attrs.get("until", timezone.now()):
            raise serializers.ValidationError({"since": "Later than `until`."})
        return super().validate(attrs)


class QuantilesSerializer(serializers.Serializer[Any]):
    """Percentiles of durations in seconds, exact to 9.1 %. Null: no durations."""

    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)
    p99 = serializers.FloatField(allow_null=True)


class ProcessedSerializer(serializers.Serializer[Any]):
    """`succeeded`, `failed`, `temporary`: attempts by outcome. `recovered`: successes after a failure.
    `processing`: duration of attempts; `critical`: from the producer's timestamp to success, without
    `no_timestamp` and `before_sent` (timestamp later than the success). `busy_seconds` of
    `capacity_seconds`: use of the concurrency in reported minutes. `spool_seconds`: paused by a full spool.
    `children_bytes`: largest memory of an instance."""

    succeeded = serializers.IntegerField()
    failed = serializers.IntegerField()
    temporary = serializers.IntegerField()
    recovered = serializers.IntegerField()
    bytes = serializers.IntegerField()
    no_timestamp = serializers.IntegerField()
    before_sent = serializers.IntegerField()
    busy_seconds = serializers.FloatField()
    capacity_seconds = serializers.FloatField()
    spool_seconds = serializers.FloatField()
    children_bytes = serializers.IntegerField()
    processing = QuantilesSerializer()
    critical = QuantilesSerializer()


class SeriesPointSerializer(ProcessedSerializer):
    """`waiting` to `oldest_seconds`: last broker counts; null if unknown, and always for a server.
    `oldest_seconds`: age of the oldest waiting message by the producer's clock."""

    start = serializers.DateTimeField()
    seconds = serializers.FloatField()
    waiting = serializers.IntegerField(allow_null=True)
    delayed = serializers.IntegerField(allow_null=True)
    in_delivery = serializers.IntegerField(allow_null=True)
    dead = serializers.IntegerField(allow_null=True)
    oldest_seconds = serializers.FloatField(allow_null=True)


class MetricSeriesSerializer(serializers.Serializer[Any]):
    """Up to 400 points without gaps, `step_seconds` apart (one minute to one day). `total`: their sum.
    `since` and `until`: the range of the points; what is not kept is left out."""

    setting = serializers.CharField(allow_null=True)
    server = serializers.CharField(allow_null=True)
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    step_seconds = serializers.IntegerField()
    total = ProcessedSerializer()
    points = SeriesPointSerializer(many=True)


class MetricSeries(APIView):
    """Figures over time of a `setting`, a `server`, a setting on a server (both), or the installation
    (neither). Minutes are kept for 48 hours, hours for 30 days, days for a year."""

    @property
    def action_permissions(self) -> dict[str, tuple[str, ...]]:
        """Those of the page of what is asked for."""
        asked: Mapping[str, Any] = getattr(getattr(self, "request", None), "query_params", {})
        found = ["agents.view_server"] if asked.get("server") else []
        if asked.get("setting") or not found:
            found.append("agents.view_launchsetting")
        return {"get": tuple(found)}

    @extend_schema(operation_id="metrics_series", parameters=[SeriesQuery], responses=MetricSeriesSerializer)
    def get(self, request: Request) -> Response:
        asked, now = asked_in(request, SeriesQuery), timezone.now()
        key, name = asked.get("setting"), asked.get("server")
        setting = get_object_or_404(LaunchSetting, key=key) if key else None
        server = get_object_or_404(Server, name=name) if name else None
        until = max(asked.get("until", now), _NOTHING_BEFORE)
        since = asked.get("since") or until - DEFAULT_RANGE
        scope = scope_of(setting.pk if setting else None, server.pk if server else None)
        found = series(scope, since, until, now)
        answer = {
            "setting": key or None,
            "server": name or None,
            "since": found.start,
            "until": found.end,
            "step_seconds": int(found.step.total_seconds()),
            "total": _total(found.points),
            "points": [_as_told(point) for point in found.points],
        }
        return Response(MetricSeriesSerializer(answer).data)


def _as_told(point: Point) -> dict[str, Any]:
    values = {each.name: getattr(point, each.name) for each in fields(point)}
    return values | {name: _quantiles(values[name]) for name in HISTOGRAMS}


def _total(points: tuple[Point, ...]) -> dict[str, Any]:
    total: dict[str, Any] = {name: sum(getattr(point, name) for point in points) for name in PLAIN}
    total["children_bytes"] = max((point.children_bytes for point in points), default=0)
    for name in HISTOGRAMS:
        total[name] = _quantiles(merged(getattr(point, name) for point in points))
    return total


def _quantiles(histogram: Mapping[int, int]) -> dict[str, float | None]:
    return {name: quantile(histogram, part) for name, part in QUANTILES.items()}
