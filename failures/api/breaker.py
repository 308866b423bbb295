"""/api/v1/settings/KEY/breaker/ and …/what-if/: how near each server is to a trip, which failures count, and
what another threshold would have done."""

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.api.trips import InterruptionSerializer, TripSerializer
from agents.models import BreakReason, LaunchSetting, RunPhase, Spread
from console.rest.lists import asked_in
from console.rest.serializers import QuerySerializer
from contract.breaker import same_limit
from failures.pages.breaker import ServerStrip, breaker_state, verdict_text
from failures.pages.protocols import VIEW
from failures.pages.what_if import SEE_SETTING, WhatIfRow, what_if_rows
from failures.what_if import Step, Verdict

# Both of them, as the panels of the page of the setting.
RIGHTS: dict[str, tuple[str, ...]] = {"get": (SEE_SETTING, VIEW)}
LARGEST_M = 10_000
MOST_TRIPS = 200


def _setting(key: str) -> LaunchSetting:
    """Raises Http404."""
    return get_object_or_404(LaunchSetting.objects.select_related("disabled_by"), key=key)


# -- the breaker as it stands --------------------------------------------------------------------------------


class CountedFailureSerializer(serializers.Serializer[Any]):
    """`verdict`: how the breaker counted the failure, `why`: the reason as text. `same` and `any`: the counts
    after it. `successes`: messages processed successfully since the previous failure."""

    id = serializers.UUIDField(source="failure.id")
    at = serializers.DateTimeField(source="failure.at")
    exception_type = serializers.CharField(source="failure.exception_type")
    verdict = serializers.ChoiceField([each.value for each in Verdict], source="verdict.value")
    why = serializers.SerializerMethodField()
    same = serializers.IntegerField(source="counts.same")
    any = serializers.IntegerField(source="counts.any")
    successes = serializers.IntegerField(source="gap")

    def get_why(self, step: Step) -> str:
        return verdict_text(step)


class ServerBreakerSerializer(serializers.Serializer[ServerStrip]):
    """The newest run on a server: `same_count` of `same_limit` (N) and `any_count` of `any_limit` (M).
    `carried`: counted in an earlier activation. `failures`: the latest, up to 40, oldest first; `older`:
    there are more."""

    server = serializers.CharField(source="row.run.server.name")
    epoch = serializers.IntegerField(source="row.run.epoch")
    state = serializers.ChoiceField(RunPhase.choices, source="row.run.state")
    same_type = serializers.CharField(source="row.run.same_type")
    same_count = serializers.IntegerField(source="row.run.same_count")
    same_limit = serializers.IntegerField(source="row.same.limit")
    any_count = serializers.IntegerField(source="row.run.any_count")
    any_limit = serializers.IntegerField(source="row.any.limit")
    carried = serializers.IntegerField()
    older = serializers.BooleanField(source="left_out")
    failures = serializers.SerializerMethodField()

    @extend_schema_field(CountedFailureSerializer(many=True))
    def get_failures(self, strip: ServerStrip) -> Any:
        return CountedFailureSerializer([mark.step for mark in strip.marks], many=True).data


class BreakerSerializer(serializers.Serializer[Any]):
    """`says`: why the setting is disabled or enabled, `since` when, if known. `needed`: servers required for
    a trip; `interrupted`: servers that interrupted it; `others`: servers that continue. `trip`: the open
    trip. `interruptions`: the latest 20, newest first."""

    setting = serializers.CharField()
    enabled = serializers.BooleanField()
    breaker_m = serializers.IntegerField()
    breaker_n = serializers.IntegerField()
    count_once = serializers.BooleanField()
    spread = serializers.ChoiceField(Spread.choices)
    says = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True)
    activation = serializers.UUIDField(allow_null=True)
    needed = serializers.IntegerField()
    interrupted = serializers.ListField(child=serializers.CharField())
    others = serializers.ListField(child=serializers.CharField())
    servers = ServerBreakerSerializer(many=True)
    trip = TripSerializer(allow_null=True)
    interruptions = InterruptionSerializer(many=True)


class SettingBreaker(APIView):
    """Shows how close each server of the latest activation is to a trip, and which failures count."""

    action_permissions = RIGHTS

    @extend_schema(operation_id="settings_breaker", responses=BreakerSerializer)
    def get(self, request: Request, key: str) -> Response:
        setting = _setting(key)
        state = breaker_state(setting, timezone.now())
        stands = state.stands
        found = {
            "setting": setting.key,
            "enabled": setting.enabled,
            "breaker_m": setting.breaker_m,
            "breaker_n": same_limit(setting.breaker_m),
            "count_once": setting.count_once,
            "spread": setting.spread,
            "says": stands.answer.text,
            "since": stands.answer.since,
            "activation": stands.activation.pk if stands.activation else None,
            "needed": stands.quorum.needed,
            "interrupted": stands.quorum.interrupted,
            "others": stands.quorum.others,
            "servers": state.strips,
            "trip": stands.trip,
            "interruptions": stands.interruptions,
        }
        return Response(BreakerSerializer(found, context={"request": request}).data)


# -- what another threshold would have done ------------------------------------------------------------------


class WhatIfQuery(QuerySerializer):
    """Default of `m`: the threshold of the setting."""

    m = serializers.IntegerField(required=False, min_value=1, max_value=LARGEST_M)


class WouldTripSerializer(serializers.Serializer[Any]):
    """`servers`: servers that had interrupted the setting, in this order."""

    at = serializers.DateTimeField()
    reason = serializers.ChoiceField(BreakReason.choices, source="reason.value")
    exception_type = serializers.CharField()
    servers = serializers.ListField(child=serializers.CharField())


class WhatIfAnswerSerializer(serializers.Serializer[WhatIfRow]):
    """`failures` since `since` were evaluated; `cut`: there were more in 30 days. `trips`: the first 200 of
    `trip_count`. `alone`: interruptions by a single server without a trip."""

    m = serializers.IntegerField()
    n = serializers.IntegerField()
    since = serializers.DateTimeField()
    cut = serializers.BooleanField()
    failures = serializers.IntegerField(source="answer.failures")
    alone = serializers.IntegerField(source="answer.alone")
    trip_count = serializers.SerializerMethodField()
    trips = serializers.SerializerMethodField()

    def get_trip_count(self, row: WhatIfRow) -> int:
        return len(row.answer.trips)

    @extend_schema_field(WouldTripSerializer(many=True))
    def get_trips(self, row: WhatIfRow) -> Any:
        return WouldTripSerializer(row.answer.trips[:MOST_TRIPS], many=True).data


class WhatIfSerializer(serializers.Serializer[Any]):
    """`answers`: for the requested threshold, then for that of the setting."""

    setting = serializers.CharField()
    breaker_m = serializers.IntegerField()
    answers = WhatIfAnswerSerializer(many=True)


class SettingWhatIf(APIView):
    """Shows how often another threshold M would have tripped in the last 30 days, from up to 50,000 of the
    latest failures. Read-only."""

    action_permissions = RIGHTS

    @extend_schema(operation_id="settings_what_if", parameters=[WhatIfQuery], responses=WhatIfSerializer)
    def get(self, request: Request, key: str) -> Response:
        m, setting = asked_in(request, WhatIfQuery).get("m"), _setting(key)
        thresholds = list(dict.fromkeys([m or setting.breaker_m, setting.breaker_m]))
        answers = what_if_rows(setting, thresholds, timezone.now())
        found = {"setting": setting.key, "breaker_m": setting.breaker_m, "answers": answers}
        return Response(WhatIfSerializer(found).data)
