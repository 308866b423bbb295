"""Dead letters in groups: what they died of, where, in which activation, on which day. Bounded at any
size."""

from dlq.groups.facts import Facts, facts_of
from dlq.groups.queries import Group, Groups, Part, groups_of
from dlq.groups.rules import KINDS, Kind, kind_named

__all__ = ["KINDS", "Facts", "Group", "Groups", "Kind", "Part", "facts_of", "groups_of", "kind_named"]
