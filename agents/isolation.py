"""Rows beside each other: one that cannot be seen to never keeps the others from it.

What goes wrong is logged with the key of its setting, and tried again with the next look. That the database
is away or locked is nothing that lies in one row: it is raised on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import structlog
from django.db import InterfaceError, OperationalError

from agents.models import Activation

log = structlog.get_logger(__name__)


@contextmanager
def isolated(step: str, *, activation: UUID | None = None, **about: object) -> Iterator[None]:
    """`about` is for the log, which names the setting of an `activation`. What writes inside has a
    transaction of its own, as all steps have: in a transaction around it that is a savepoint, and PostgreSQL
    goes on after it."""
    try:
        yield
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("step failed, skipped", step=step, **_named(activation), **about)


def _named(activation: UUID | None) -> dict[str, str | None]:
    """Asked for only where it is told: joined with the settings, lists of activations are slow."""
    if activation is None:
        return {}
    keys = Activation.objects.filter(pk=activation).values_list("setting__key", flat=True)
    return {"activation": str(activation), "setting": keys.first()}
