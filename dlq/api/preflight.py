"""/api/v1/preflight/: what would happen with the same question to /api/v1/replays/. Changes nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from django.http import QueryDict
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import LaunchSetting
from console.operations.rest import as_problems, forbidding
from dlq.models import Action, InOrder, Scope
from dlq.replay.preflight.handling import CODES as DIFFERENT
from dlq.replay.preflight.rules import CODES, PreflightResult
from dlq.replay.preflight.text import difference_words, reason, sentence
from dlq.replay.requests import (
    HOLD_MINUTES,
    LARGEST_SELECTION,
    MOST_HOLD_MINUTES,
    MOST_PER_SECOND,
    Options,
    ReplayRequest,
    check_request,
    listed_scope,
)
from dlq.search.filter import LetterFilter

# -- request bodies: an action on dead letters of one setting ------------------------------------------------


HOW = ("per_second", "window_from", "window_until", "ladder", "ladder_percent")
# An edit has a rule: it is asked for at its own address.
ACTIONS = (Action.GIVE_BACK, Action.REDIRECT, Action.DISCARD, Action.PUT_BACK)


class AskSerializer(serializers.Serializer[Any]):
    """Requires exactly one of `letters`, `all` and `query`."""

    setting = serializers.CharField(max_length=61)
    action = serializers.ChoiceField(ACTIONS, default=Action.GIVE_BACK.value)
    letters = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=2**63 - 1),
        required=False,
        max_length=LARGEST_SELECTION,
    )
    all = serializers.BooleanField(required=False, default=False)
    query = serializers.CharField(
        required=False,
        max_length=4000,
        allow_blank=True,
        help_text="Query string of the list of dead letters: `exception=KeyError&span=1d`.",
    )
    group = serializers.BooleanField(
        required=False,
        default=False,
        help_text="Marks `query` as a group; only shown with the job.",
    )
    up_to = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=2**63 - 1,
        help_text="For `all` and `query`: `newest` of the pre-flight. Messages dead-lettered later stay.",
    )
    target = serializers.CharField(
        required=False, max_length=61, help_text="For a redirect: the receiving setting."
    )
    reason = serializers.CharField(max_length=2000, required=False, default="", allow_blank=True)
    acknowledge = serializers.ListField(
        child=serializers.ChoiceField(CODES),
        required=False,
        default=list,
        help_text="Warning codes of the pre-flight. The request is refused if one is missing.",
    )
    per_second = serializers.FloatField(
        required=False,
        default=0.0,
        min_value=0,
        max_value=MOST_PER_SECOND,
        help_text="0: no limit.",
    )
    window_from = serializers.TimeField(
        required=False, allow_null=True, default=None, help_text="Local time of day."
    )
    window_until = serializers.TimeField(required=False, allow_null=True, default=None)
    ladder = serializers.BooleanField(required=False, default=False)
    ladder_percent = serializers.IntegerField(required=False, default=10, min_value=0, max_value=100)
    in_order = serializers.ChoiceField(
        InOrder.choices,
        required=False,
        default="",
        allow_blank=True,
        help_text="Keep the publishing order, before (`ahead`) or after the waiting messages. Empty: order "
        "of the broker.",
    )
    hold_minutes = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_HOLD_MINUTES,
        help_text=f"For `ahead`: maximum hold of the subscription. Default: {HOLD_MINUTES}.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        named = ["letters" in attrs, attrs["all"], "query" in attrs]
        if sum(named) != 1:
            raise serializers.ValidationError(
                {"letters": "Send exactly one of `letters`, `all: true` and `query`."}
            )
        if "letters" in attrs and "up_to" in attrs:
            raise serializers.ValidationError({"up_to": "up_to is allowed only with `all` and `query`."})
        if (attrs["action"] == Action.REDIRECT) != bool(attrs.get("target")):
            raise serializers.ValidationError(
                {"target": "target is required for a redirect, and allowed only there."}
            )
        if "query" in attrs:
            _check_query(attrs["query"])
        if attrs.get("letters") == []:
            raise serializers.ValidationError({"letters": "Send at least one message number."})
        return attrs


def _check_query(query: str) -> None:
    """Raises ValidationError: an empty one, or an empty part of it, would choose everything."""
    if not query.strip():
        raise serializers.ValidationError(
            {"query": "The query is empty. To select all messages, send all: true."}
        )
    if problems := LetterFilter.unclear(QueryDict(query)):
        raise serializers.ValidationError(
            {"query": [f"{name}: {problem}" for name, problem in problems.items()]}
        )


def request_of(asked: dict[str, Any]) -> ReplayRequest:
    """Builds it of validated data. Raises Http404 for a setting that is not there."""
    setting = get_object_or_404(
        LaunchSetting.objects.select_related("pool", "destination"), key=asked["setting"]
    )
    target = None
    if asked.get("target"):
        targets = LaunchSetting.objects.select_related("pool", "destination")
        target = get_object_or_404(targets, key=asked["target"])
    letters = sorted(set(asked.get("letters", ())))
    return ReplayRequest(
        setting,
        asked["action"],
        _scope(asked, letters),
        letters=letters,
        query=asked.get("query", ""),
        target=target,
        reason=asked["reason"],
        options=Options(**{name: asked[name] for name in HOW}, **_order(asked)),
        acknowledged=asked["acknowledge"],
        up_to=asked.get("up_to"),
    )


def _order(asked: dict[str, Any]) -> dict[str, Any]:
    """An edit has none."""
    in_order = asked.get("in_order", "")
    minutes = HOLD_MINUTES if in_order == InOrder.AHEAD else 0
    return {"in_order": in_order, "hold_minutes": asked.get("hold_minutes", minutes)}


def _scope(asked: dict[str, Any], letters: list[int]) -> Scope:
    if asked["all"]:
        return Scope.ALL
    if "query" in asked:
        return Scope.GROUP if asked["group"] else Scope.MATCHING
    return listed_scope(letters)


@contextmanager
def as_replay_problems() -> Iterator[None]:
    """Turns what is refused into an error of the API. The attempt is in the audit already."""
    with as_problems("letters"), forbidding("setting"):
        yield


class WarningSerializer(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="Code for `acknowledge`.")
    n = serializers.IntegerField()
    of = serializers.IntegerField()
    text = serializers.CharField()


class DifferenceSerializer(serializers.Serializer[Any]):
    code = serializers.ChoiceField(DIFFERENT)
    source = serializers.JSONField(  # type: ignore[assignment]  # a field; that of Field is of fields only
        help_text="Value of the source setting."
    )
    target = serializers.JSONField(help_text="Value of the target setting.")
    text = serializers.CharField()


class FlightSerializer(serializers.Serializer[Any]):
    going = serializers.IntegerField(help_text="Number of included messages; with `about` a lower bound.")
    total = serializers.IntegerField(
        help_text="Number of messages in the scope; with `about` an upper bound."
    )
    about = serializers.BooleanField(
        help_text="true: only `seen` messages were checked; the job counts all of them."
    )
    seen = serializers.IntegerField()
    newest = serializers.IntegerField(
        help_text="Number of the newest checked message, for `up_to` of the job. 0: there is none."
    )
    skipped = serializers.DictField(
        child=serializers.IntegerField(), help_text="Number of skipped messages of `seen`, by reason."
    )
    reasons = serializers.DictField(child=serializers.CharField(), help_text="Texts of the reasons.")
    examples = serializers.DictField(child=serializers.ListField(child=serializers.IntegerField()))
    warnings = WarningSerializer(many=True)
    differences = DifferenceSerializer(
        many=True, help_text="For a redirect to another destination: differences in processing."
    )
    typed = serializers.BooleanField(help_text="true: pages ask to type the number.")


def verdict_json(verdict: PreflightResult) -> dict[str, Any]:
    return {
        "going": verdict.going,
        "total": verdict.total,
        "about": verdict.about,
        "seen": verdict.seen,
        "newest": verdict.newest,
        "skipped": verdict.skipped,
        "reasons": {code: reason(code) for code in verdict.skipped},
        "examples": {code: list(letters) for code, letters in verdict.examples.items()},
        "warnings": [asdict(warning) | {"text": sentence(warning)} for warning in verdict.warnings],
        "differences": [
            asdict(each) | {"text": difference_words(each).sentence} for each in verdict.differences
        ],
        "typed": verdict.typed,
    }


class Preflight(APIView):
    """Requires the same permissions as the action."""

    action_permissions: dict[str, tuple[str, ...]] = {"post": ()}

    @extend_schema(request=AskSerializer, responses={200: FlightSerializer})
    def post(self, request: Request) -> Response:
        """Returns the messages that the action would include or skip, with reasons, and the warnings to
        acknowledge. Refused with the same status and reason as the job."""
        ask = AskSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        with as_replay_problems():
            verdict = check_request(request_of(ask.validated_data), by=request.user, now=timezone.now())
        return Response(verdict_json(verdict))
