"""Describes what the REST interface says of waiting messages, and what it is asked."""

from typing import Any

from rest_framework import serializers

from console.audit.log import LONGEST_REASON
from console.rest.serializers import ReasonCode, ReasonParams, ReasonText
from dlq.models.message_action import MessageResult, WaitingAction, WaitingItem, WaitingKind, WaitingPart
from dlq.subscriptions.queries import PARTS, PER_PAGE, MessagePage, MessageRow
from dlq.subscriptions.requests import LARGEST_SELECTION, action_counts


class WaitingCountsSerializer(serializers.Serializer[Any]):
    waiting = serializers.IntegerField()
    delayed = serializers.IntegerField()
    in_delivery = serializers.IntegerField()
    held = serializers.IntegerField()


class WaitingPropertySerializer(serializers.Serializer[Any]):
    name = serializers.CharField()
    value = serializers.CharField(help_text="As text; the broker cuts it at 256 characters.")
    masked = serializers.BooleanField(default=False)


class WaitingNextTrySerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField()
    of = serializers.IntegerField(allow_null=True, help_text="Null: unlimited.")
    due = serializers.DateTimeField(help_text="Estimate; only for a delayed message.")


class WaitingDeliverySerializer(serializers.Serializer[Any]):
    server = serializers.CharField(help_text="Empty: not a server of this site.")
    connection = serializers.CharField()
    since = serializers.DateTimeField(allow_null=True)
    exact = serializers.BooleanField(help_text="false: at least since then.")


class WaitingHoldSerializer(serializers.Serializer[Any]):
    by = serializers.CharField()
    at = serializers.DateTimeField()
    reason = serializers.CharField()


class WaitingMessageSerializer(serializers.Serializer[Any]):
    number = serializers.IntegerField(help_text="Message number of the broker, valid only in this part.")
    message_id = serializers.CharField()
    message_key = serializers.CharField(help_text="Empty if the producer set no id.")
    priority = serializers.IntegerField()
    durable = serializers.BooleanField()
    sent_at = serializers.DateTimeField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    properties = WaitingPropertySerializer(many=True)
    body = serializers.CharField(
        allow_null=True, help_text="Beginning of the body; null if the broker does not show it."
    )
    next_attempt = WaitingNextTrySerializer(allow_null=True)
    delivery = WaitingDeliverySerializer(allow_null=True)
    hold = WaitingHoldSerializer(allow_null=True)


class WaitingLookSerializer(serializers.Serializer[Any]):
    part = serializers.ChoiceField(PARTS)
    counts = WaitingCountsSerializer()
    told = serializers.IntegerField(
        allow_null=True, help_text="Number of messages that the broker lists; null: none."
    )
    cut = serializers.BooleanField(help_text="true: the broker has more messages than it lists.")
    next = serializers.IntegerField(allow_null=True, help_text="`start` of the next page.")
    messages = WaitingMessageSerializer(many=True)


def page_data(found: MessagePage) -> dict[str, Any]:
    """What a WaitingLookSerializer takes."""
    return {
        "part": found.part,
        "counts": found.counts,
        "told": found.reported,
        "cut": found.reported is None or found.cut,
        "next": found.start + PER_PAGE if found.more else None,
        "messages": [_message(line) for line in found.lines],
    }


def _message(line: MessageRow) -> dict[str, Any]:
    message = line.message
    return {
        "number": message.number,
        "message_id": message.message_id,
        "message_key": line.key,
        "priority": message.priority,
        "durable": message.durable,
        "sent_at": message.sent_at,
        "expires_at": message.expires_at,
        "properties": line.properties,
        "body": line.body,
        "next_attempt": line.attempt,
        "delivery": line.held,
        "hold": line.hold,
    }


class WaitingAskSerializer(serializers.Serializer[Any]):
    """Requires either `messages` or `all`."""

    action = serializers.ChoiceField(WaitingKind.choices)
    part = serializers.ChoiceField(WaitingPart.choices)
    messages = serializers.ListField(
        child=serializers.IntegerField(min_value=0, max_value=2**63 - 1),
        required=False,
        allow_empty=False,
        max_length=LARGEST_SELECTION,
        help_text="Message numbers.",
    )
    all = serializers.BooleanField(required=False, default=False)
    most = serializers.IntegerField(
        required=False, min_value=1, max_value=2**31 - 1, help_text="With `all`: maximum number of messages."
    )
    reason = serializers.CharField(max_length=LONGEST_REASON, required=False, default="", allow_blank=True)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("messages" in attrs) == attrs["all"]:
            raise serializers.ValidationError({"messages": "Send either messages or all: true."})
        return attrs


class WaitingActionSerializer(serializers.ModelSerializer[WaitingAction]):
    setting = serializers.CharField(source="setting_key")
    action = serializers.CharField(source="kind")
    all = serializers.BooleanField(source="every")
    by = serializers.CharField(source="by_name")
    fates = serializers.SerializerMethodField(
        help_text="Number of messages: planned, acted, done, left (processed or expired before), stayed, "
        "missing (not found at the time of the request)."
    )

    problem = ReasonText()
    problem_code = ReasonCode("problem")
    problem_params = ReasonParams("problem")

    class Meta:
        model = WaitingAction
        fields = (
            "id", "setting", "action", "part", "all", "reason", "by", "state", "total", "fates", "problem",
            "problem_code", "problem_params",
            "stopping",
            "created_at", "acted_at", "finished_at",
        )  # fmt: skip

    def get_fates(self, action: WaitingAction) -> dict[str, int]:
        counts = action_counts(action)
        return {name: counts.get(name, 0) for name in (*MessageResult.values, "missing")}


class WaitingItemSerializer(serializers.ModelSerializer[WaitingItem]):
    class Meta:
        model = WaitingItem
        fields = ("id", "number", "message_key", "fate", "at")
