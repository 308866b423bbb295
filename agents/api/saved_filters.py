"""Saving, changing and deleting filters under a name over REST: what is asked, and why not."""

from typing import NoReturn

from rest_framework import serializers

from agents.services.saved import LONGEST_NAME, LONGEST_QUERY, FilterRefused
from console.rest.errors import ApiProblem, Conflict, Forbidden
from console.rest.serializers import BodySerializer

NOT_NOW = ("exists", "too_many")


class SavedFilterAskSerializer(BodySerializer):
    name = serializers.CharField(max_length=LONGEST_NAME)
    query = serializers.CharField(
        max_length=LONGEST_QUERY, help_text="As in the address of the list: `exception=KeyError&span=1d`."
    )
    shared = serializers.BooleanField(required=False, default=False)


class SavedFilterChangeSerializer(BodySerializer):
    """What is left out stays."""

    name = serializers.CharField(max_length=LONGEST_NAME, required=False)
    query = serializers.CharField(max_length=LONGEST_QUERY, required=False)
    shared = serializers.BooleanField(required=False)


def refuse(refused: FilterRefused) -> NoReturn:
    kind = Forbidden if refused.code == "not_owner" else Conflict if refused.code in NOT_NOW else ApiProblem
    raise kind(refused.reason, what_to_do=refused.what_to_do, code=refused.code) from refused
