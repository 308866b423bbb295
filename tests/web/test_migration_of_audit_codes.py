"""An audit of before speaks today's codes, so that its words, its links and what is looked up in it stay."""

from collections.abc import Callable
from importlib import import_module
from uuid import uuid4

import pytest
from django.urls import get_resolver
from django.utils import timezone

from console.audit import text
from console.audit.log import record
from console.audit.models import AuditEntry

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]
BEFORE, TODAY = ("dlq", "0027_jobs_with_holders"), ("dlq", "0028_codes_of_the_audit")
CODES = import_module("dlq.migrations.0028_codes_of_the_audit").CODES


def test_every_code_of_before_has_one_of_today_with_words(migrate: Callable[[str, str], object]) -> None:
    migrate(*BEFORE)
    before = {old: code for code, some in CODES.items() for old in some}
    for old in before:
        record(old, by=None, now=timezone.now(), target="waiting:7", operation=uuid4())
    record("server.drain", by=None, now=timezone.now(), target="server:waiting:1")
    migrate(*TODAY)
    entries = AuditEntry.objects.order_by("pk").values_list("action", "target")
    named = [(code, "message_action:7") for code in before.values()]
    assert list(entries) == [*named, ("server.drain", "server:waiting:1")]
    assert get_resolver().url_patterns  # whoever declares words is imported with the pages
    assert set(CODES) <= text.ACTIONS.keys()
    migrate(*BEFORE)
    targets = set(AuditEntry.objects.values_list("target", flat=True))
    assert targets == {"waiting:7", "server:waiting:1"}


def test_an_edit_by_a_rule_is_told_from_one_of_a_letter(migrate: Callable[[str, str], object]) -> None:
    migrate(*BEFORE)
    by_rule, single = uuid4(), uuid4()
    for action, operation, letter in (
        ("edit_rule", by_rule, None), ("edit", by_rule, None), ("edit", single, 7), ("edit", None, None),
    ):  # fmt: skip
        record(action, by=None, now=timezone.now(), target="replay:1", operation=operation, letter=letter)
    migrate(*TODAY)
    told = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    assert told == ["dead_letters.edit", "dead_letters.edit", "dead_letter.edit", "dead_letters.edit"]
