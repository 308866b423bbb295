"""The audit: rows are only added, and what was refused is among them."""

import pytest
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.utils import timezone

from dlq.auditing import attempt, record, record_refused
from dlq.models import AuditEntry, AuditResult
from dlq.models.audit import AuditChanged
from dlq.replay.jobs import ReplayRefused
from tests.web import reports

pytestmark = pytest.mark.django_db


@pytest.fixture
def anna() -> User:
    return reports.person("anna")


def test_a_row_is_never_changed_and_never_deleted(anna: User) -> None:
    entry = record("discard", by=anna, now=timezone.now(), target="letter:1", letter=1, counts={"moved": 1})
    entry.reason = "another one"
    for change in (entry.save, entry.delete, AuditEntry.objects.all().delete):
        with pytest.raises(AuditChanged):
            change()
    with pytest.raises(AuditChanged):
        AuditEntry.objects.update(reason="another one")
    kept = AuditEntry.objects.get()
    assert (kept.by_name, kept.reason, kept.counts, kept.result) == ("anna", "", {"moved": 1}, AuditResult.DONE)


def test_the_row_of_a_person_who_is_deleted_keeps_the_name(anna: User) -> None:
    record("discard", by=anna, now=timezone.now(), target="letter:1")
    anna.delete()
    kept = AuditEntry.objects.get()
    assert (kept.by, kept.by_name) == (None, "anna")


@pytest.mark.parametrize("error", [PermissionDenied("no"), ReplayRefused("outstanding", "no")])
def test_a_refused_attempt_is_recorded_once(anna: User, error: Exception) -> None:
    about = {"by": anna, "target": "letter:1", "setting_key": "orders", "letter": 1}
    with pytest.raises(type(error)), attempt("discard", **about), attempt("discard", **about):  # type: ignore[arg-type]
        raise error
    entry = AuditEntry.objects.get()
    assert (entry.result, entry.setting_key, entry.letter, entry.detail["why"]) == ("refused", "orders", 1, "no")


def test_what_simply_breaks_is_no_refusal(anna: User) -> None:
    with pytest.raises(ZeroDivisionError), attempt("discard", by=anna, target="letter:1"):
        raise ZeroDivisionError
    assert not AuditEntry.objects.exists()


def test_hostile_and_long_texts_are_stored(anna: User) -> None:
    record_refused("discard" * 20, by=anna, target="x\0" * 400, setting_key="k" * 99, why="\ud800" * 9000)
    assert AuditEntry.objects.get().result == "refused"
