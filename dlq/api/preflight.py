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
    """One of `letters`, `all` and `query`."""

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
        help_text="A filter as in the address of the list of dead letters: `exception=KeyError&span=1d`.",
    )
    group = serializers.BooleanField(
        required=False,
        default=False,
        help_text="That `query` is a group: only for people who look at the job later.",
    )
    target = serializers.CharField(
        required=False, max_length=61, help_text="Redirect: the setting that gets them."
    )
    reason = serializers.CharField(max_length=2000, required=False, default="", allow_blank=True)
    acknowledge = serializers.ListField(
        child=serializers.ChoiceField(CODES),
        required=False,
        default=list,
        help_text="Codes of the warnings of a pre-flight. With one that is missing the question is refused.",
    )
    per_second = serializers.FloatField(
        required=False,
        default=0.0,
        min_value=0,
        max_value=MOST_PER_SECOND,
        help_text="0: as fast as the broker.",
    )
    window_from = serializers.TimeField(
        required=False, allow_null=True, default=None, help_text="Time of day, local."
    )
    window_until = serializers.TimeField(required=False, allow_null=True, default=None)
    ladder = serializers.BooleanField(required=False, default=False)
    ladder_percent = serializers.IntegerField(required=False, default=10, min_value=0, max_value=100)
    in_order = serializers.ChoiceField(
        InOrder.choices,
        required=False,
        default="",
        allow_blank=True,
        help_text="In the order of publishing, behind or ahead of what waits. "
        "Empty: as the broker moves them.",
    )
    hold_minutes = serializers.IntegerField(
        required=False,
        min_value=1,
        max_value=MOST_HOLD_MINUTES,
        help_text=f"`ahead`: how long the subscription is held at most; else {HOLD_MINUTES}.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        named = ["letters" in attrs, attrs["all"], "query" in attrs]
        if sum(named) != 1:
            raise serializers.ValidationError(
                {"letters": "Name letters, or say all: true, or give a query: one of them."}
            )
        if (attrs["action"] == Action.REDIRECT) != bool(attrs.get("target")):
            raise serializers.ValidationError(
                {"target": "A redirect needs a target, and nothing else has one."}
            )
        if "query" in attrs:
            _check_query(attrs["query"])
        if attrs.get("letters") == []:
            raise serializers.ValidationError({"letters": "Name at least one letter."})
        return attrs


def _check_query(query: str) -> None:
    """Raises ValidationError: an empty one, or an empty part of it, would choose everything."""
    if not query.strip():
        raise serializers.ValidationError({"query": "It is empty. For everything say all: true."})
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
    code = serializers.CharField(help_text="To be named in `acknowledge`.")
    n = serializers.IntegerField()
    of = serializers.IntegerField()
    text = serializers.CharField()


class DifferenceSerializer(serializers.Serializer[Any]):
    code = serializers.ChoiceField(DIFFERENT)
    source = serializers.JSONField(  # type: ignore[assignment]  # a field; that of Field is of fields only
        help_text="Of the setting that they leave."
    )
    target = serializers.JSONField(help_text="Of the setting that gets them.")
    text = serializers.CharField()


class FlightSerializer(serializers.Serializer[Any]):
    going = serializers.IntegerField(help_text="How many would go; with `about` at least so many.")
    total = serializers.IntegerField(help_text="How many letters the scope holds; with `about` at most.")
    about = serializers.BooleanField(
        help_text="There are more than `seen`, of which nothing is said: the job counts them exactly."
    )
    seen = serializers.IntegerField()
    skipped = serializers.DictField(
        child=serializers.IntegerField(), help_text="How many of `seen` stay, by reason."
    )
    reasons = serializers.DictField(child=serializers.CharField(), help_text="The reasons for people.")
    examples = serializers.DictField(child=serializers.ListField(child=serializers.IntegerField()))
    warnings = WarningSerializer(many=True)
    differences = DifferenceSerializer(
        many=True, help_text="A redirect to another destination: how handling differs there."
    )
    typed = serializers.BooleanField(help_text="So many that a page asks for the number.")


def verdict_json(verdict: PreflightResult) -> dict[str, Any]:
    return {
        "going": verdict.going,
        "total": verdict.total,
        "about": verdict.about,
        "seen": verdict.seen,
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
    """Needs the same rights as the action."""

    action_permissions: dict[str, tuple[str, ...]] = {"post": ()}

    @extend_schema(request=AskSerializer, responses={200: FlightSerializer})
    def post(self, request: Request) -> Response:
        """What would go where, what would stay and why, and what has to be acknowledged first. What a job
        would be refused for is refused here, with the same status and reason."""
        ask = AskSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        with as_replay_problems():
            verdict = check_request(request_of(ask.validated_data), by=request.user, now=timezone.now())
        return Response(verdict_json(verdict))
