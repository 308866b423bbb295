"""/api/v1/dead-letter-groups/: dead letters by what they died of, where, in which activation, on which
day."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.rest.lists import asked_in
from dlq.api.dead_letters import SeesLetters
from dlq.dead_letters.masks import masks_for
from dlq.groups.facts import GroupFacts, facts_of_groups, key_of
from dlq.groups.queries import Group, groups_of
from dlq.groups.rules import KINDS, narrowed
from dlq.search.visibility import dead_queues_for

MOST = 200
OF_FAULTS = "Grouped by anything but `fingerprint`, only entries for a whole setting count."


class GroupsQuery(serializers.Serializer[Any]):
    by = serializers.ChoiceField(list(KINDS), default="fingerprint")
    setting = serializers.CharField(required=False, help_text="Default: every setting that you may see.")
    destination = serializers.CharField(required=False, help_text="Only settings of this destination.")
    queue = serializers.CharField(required=False)
    limit = serializers.IntegerField(required=False, default=50, min_value=1, max_value=MOST)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Groups of more dead letters than were asked for would be taken for those that were."""
        if unknown := sorted(set(self.initial_data) - set(self.fields) - {"format"}):
            raise serializers.ValidationError(
                {unknown[0]: f"Unknown filter; known filters: {sorted(self.fields)}."}
            )
        return attrs


class GroupPartSerializer(serializers.Serializer[Any]):
    setting = serializers.CharField()
    count = serializers.IntegerField()
    about = serializers.BooleanField()


class LetterGroupSerializer(serializers.Serializer[Any]):
    value = serializers.CharField(help_text="Empty: messages without a known value.")
    count = serializers.IntegerField()
    about = serializers.BooleanField(help_text="true: `count` is an estimate.")
    settings = GroupPartSerializer(many=True)
    query = serializers.CharField(
        help_text="Filter for the messages of the group, in lists, replays and exports."
    )
    first_died_at = serializers.DateTimeField(allow_null=True)
    last_died_at = serializers.DateTimeField(allow_null=True)
    example = serializers.IntegerField(
        allow_null=True, help_text="Number of the latest message of the group."
    )
    exception_type = serializers.CharField()
    place = serializers.CharField()
    text = serializers.CharField()
    versions = serializers.ListField(
        child=serializers.CharField(), help_text="Agent versions in the latest messages."
    )
    given_back = serializers.CharField(
        help_text="Number of replayed messages of the group; `1,000+` above that."
    )
    judged = serializers.IntegerField(help_text="Number of these with a known outcome.")
    failed_again = serializers.IntegerField(
        help_text="Number of the judged ones that failed or were dead-lettered again."
    )
    known = serializers.ListField(
        child=serializers.IntegerField(), help_text=f"Ids of known errors that mute the group. {OF_FAULTS}"
    )
    taken_by = serializers.ListField(child=serializers.CharField(), help_text=f"Assignees. {OF_FAULTS}")


class LetterGroupsSerializer(serializers.Serializer[Any]):
    by = serializers.ChoiceField(list(KINDS))
    more = serializers.BooleanField(help_text="true: there are more groups, smaller or older ones.")
    groups = LetterGroupSerializer(many=True)


class DeadLetterGroups(SeesLetters, APIView):
    @extend_schema(parameters=[GroupsQuery], responses=LetterGroupsSerializer)
    def get(self, request: Request) -> Response:
        """Largest groups first; days latest first. Messages in the trash are excluded. Groups cover whole
        queues: only the filters setting, destination and queue are accepted."""
        wanted = asked_in(request, GroupsQuery)
        some = narrowed(request.query_params, request.user, dead_queues_for(request.user))
        found = groups_of(KINDS[wanted["by"]], some.queues)
        shown = found.found[: wanted["limit"]]
        facts = facts_of_groups(shown, masks_for(request.user))
        told = [group_json(group, each) for group, each in zip(shown, facts, strict=True)]
        return Response(
            {"by": wanted["by"], "more": found.more or len(found.found) > len(shown), "groups": told}
        )


def group_json(group: Group, facts: GroupFacts) -> dict[str, Any]:
    return {
        "value": str(group.value),
        "count": group.count,
        "about": group.about,
        "settings": [
            {"setting": key_of(part.queue), "count": part.count, "about": part.about} for part in group.parts
        ],
        "query": group.query,
        "first_died_at": facts.since,
        "last_died_at": facts.latest,
        "example": facts.example,
        "exception_type": facts.exception,
        "place": facts.place,
        "text": facts.text,
        "versions": list(facts.versions),
        "given_back": facts.given_back,
        "judged": facts.judged,
        "failed_again": facts.failed_again,
        "known": [fault.pk for fault in facts.faults],
        "taken_by": [taking.by_name for taking in facts.takings],
    }
