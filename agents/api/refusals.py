"""A service that refuses is a conflict: 409 with its reason and what helps. What was deleted meanwhile is not
found."""

from collections.abc import Iterator
from contextlib import contextmanager

from rest_framework import exceptions

from agents.models import LaunchSetting, ScheduledGroup
from agents.services.switching import Refused
from console.rest.errors import Conflict


@contextmanager
def or_conflict(where: str) -> Iterator[None]:
    try:
        yield
    except (ScheduledGroup.DoesNotExist, LaunchSetting.DoesNotExist) as gone:
        raise exceptions.NotFound from gone
    except Refused as refused:
        raise Conflict(
            refused.reason, code=refused.code, where=where, what_to_do=refused.what_to_do
        ) from refused
