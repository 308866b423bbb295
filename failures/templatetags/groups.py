"""Figures of groups of failures, for templates."""

from collections.abc import Iterable

from django import template

from failures.pages.groups import Group

register = template.Library()


@register.filter
def temporary(groups: Iterable[Group]) -> int:
    """Returns how many failures of these groups were temporary."""
    return sum(group.alike.count for group in groups if group.alike.temporary)
