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
OF_FAULTS = "By a kind other than `fingerprint` only what is said of whole settings."


class GroupsQuery(serializers.Serializer[Any]):
    by = serializers.ChoiceField(list(KINDS), default="fingerprint")
    setting = serializers.CharField(required=False, help_text="Without it: every setting that you may see.")
    destination = serializers.CharField(required=False, help_text="Of the settings of this destination.")
    queue = serializers.CharField(required=False)
    limit = serializers.IntegerField(required=False, default=50, min_value=1, max_value=MOST)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Groups of more dead letters than were asked for would be taken for those that were."""
        if unknown := sorted(set(self.initial_data) - set(self.fields) - {"format"}):
            raise serializers.ValidationError(
                {unknown[0]: f"Groups are not narrowed by it; there are: {sorted(self.fields)}."}
            )
        return attrs


class GroupPartSerializer(serializers.Serializer[Any]):
    setting = serializers.CharField()
    count = serializers.IntegerField()
    about = serializers.BooleanField()


class LetterGroupSerializer(serializers.Serializer[Any]):
    value = serializers.CharField(help_text="Empty: letters of which that is not known.")
    count = serializers.IntegerField()
    about = serializers.BooleanField(help_text="`count` is an estimate: there are too many to be counted.")
    settings = GroupPartSerializer(many=True)
    query = serializers.CharField(
        help_text="The filter that finds its letters: for lists, replays and export."
    )
    first_died_at = serializers.DateTimeField(allow_null=True)
    last_died_at = serializers.DateTimeField(allow_null=True)
    example = serializers.IntegerField(allow_null=True, help_text="The number of its latest letter.")
    exception_type = serializers.CharField()
    place = serializers.CharField()
    text = serializers.CharField()
    versions = serializers.ListField(
        child=serializers.CharField(), help_text="Of the agent, in its latest letters."
    )
    given_back = serializers.CharField(help_text="How many letters of it were given back: `1,000+` beyond.")
    judged = serializers.IntegerField(help_text="Of so many of these the outcome is known.")
    failed_again = serializers.IntegerField(help_text="So many of the judged ones failed or died again.")
    known = serializers.ListField(
        child=serializers.IntegerField(), help_text=f"Numbers of known faults that mute it. {OF_FAULTS}"
    )
    taken_by = serializers.ListField(child=serializers.CharField(), help_text=f"Who works on it. {OF_FAULTS}")


class LetterGroupsSerializer(serializers.Serializer[Any]):
    by = serializers.ChoiceField(list(KINDS))
    more = serializers.BooleanField(help_text="There are other groups, smaller or older ones.")
    groups = LetterGroupSerializer(many=True)


class DeadLetterGroups(SeesLetters, APIView):
    @extend_schema(parameters=[GroupsQuery], responses=LetterGroupsSerializer)
    def get(self, request: Request) -> Response:
        """The largest first, days the latest first. What lies in the trash is not among them. They are
        counted over whole queues: of the filter of the list only setting, destination and queue hold,
        anything else is refused."""
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
