"""/api/v1/alert-rules/: the thresholds in force of every kind of alert: built in, of the site, of pools."""

from collections import defaultdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from alerts.kinds import AlertKind, rules_from
from alerts.models import AlertRule, Severity
from alerts.rules import Thresholds
from alerts.sources import every_kind
from console.rest.lists import refuse_unknown

MOST_POOLS = 500


class ThresholdsSerializer(serializers.Serializer[Any]):
    """Opens at or above `upper` for `open_after_seconds`, closes below `lower` for `close_after_seconds`."""

    upper = serializers.FloatField()
    lower = serializers.FloatField()
    open_after_seconds = serializers.FloatField()
    close_after_seconds = serializers.FloatField()
    reminder_seconds = serializers.ListField(
        child=serializers.FloatField(),
        help_text="Seconds until each reminder; the last interval repeats. Empty: notified once.",
    )


class PoolThresholdsSerializer(serializers.Serializer[Any]):
    pool = serializers.CharField()
    in_force = ThresholdsSerializer(allow_null=True)


class AlertRuleSerializer(serializers.Serializer[Any]):
    """`in_force`: thresholds of the site; null: not watched. `pools`: up to 500 pools with thresholds of
    their own. An alert of several pools opens at their lowest `upper`."""

    kind = serializers.CharField()
    name = serializers.CharField()
    severity = serializers.ChoiceField([each.name.lower() for each in Severity])
    unit = serializers.CharField()
    built_in = ThresholdsSerializer()
    in_force = ThresholdsSerializer(allow_null=True)
    pools = PoolThresholdsSerializer(many=True)


class AlertRules(APIView):
    """All alert kinds by name, including those that no rule changes."""

    action_permissions: dict[str, tuple[str, ...]] = {"get": ("alerts.view_alertrule",)}

    @extend_schema(operation_id="alert_rules_list", responses=AlertRuleSerializer(many=True))
    def get(self, request: Request) -> Response:
        refuse_unknown(request.query_params, ())
        rows: dict[str, list[AlertRule]] = defaultdict(list)
        for row in AlertRule.objects.select_related("pool").order_by("pool__name"):
            rows[row.kind].append(row)
        kinds = [_of_kind(kind, rows[kind.name]) for kind in every_kind()]
        return Response(AlertRuleSerializer(kinds, many=True).data)


def _of_kind(kind: AlertKind, rows: list[AlertRule]) -> dict[str, Any]:
    rules = rules_from(kind, rows)
    names = {row.pool.pk: row.pool.name for row in rows if row.pool is not None}
    return {
        "kind": kind.name,
        "name": kind.label,
        "severity": kind.severity.name.lower(),
        "unit": kind.unit,
        "built_in": _shown(kind.limits),
        "in_force": _shown(rules.of_site),
        "pools": [
            {"pool": name, "in_force": _shown(rules.of_pool[pool])}
            for pool, name in [*names.items()][:MOST_POOLS]
        ],
    }


def _shown(limits: Thresholds | None) -> dict[str, Any] | None:
    if limits is None:
        return None
    return {
        "upper": limits.upper,
        "lower": limits.lower,
        "open_after_seconds": limits.open_after.total_seconds(),
        "close_after_seconds": limits.close_after.total_seconds(),
        "reminder_seconds": [each.total_seconds() for each in limits.reminders],
    }
