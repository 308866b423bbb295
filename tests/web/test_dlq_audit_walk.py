"""No action on dead letters, waiting messages or saved filters misses the audit: every route of them that
takes a POST is tried by somebody who may not, and each of them has to leave an entry."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, reverse
from rest_framework.test import APIClient

from agents.models import LaunchSetting
from console.audit.models import AuditEntry
from console.audit.text import ACTIONS
from console.ui import page as consoles
from dlq.models import DeadLetter, KnownFault, LetterQueue, ReplayJob, Taking
from dlq.models.message_action import WaitingAction
from dlq.urls import urlpatterns
from failures import urls as failures
from ma_site import urls  # noqa: F401  # they bring the pages
from tests.web import letters, reports

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db]
# What changes nothing: a look before.
NO_ACTION = frozenset({"preflight"})
MODULES = ("dlq.", "console.saved_filters.")
METHODS = ("post", "put", "patch", "delete")
NOT_TAKEN = 405


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """One of each thing that an address may name, by the begin of the route's name."""
    monkeypatch.setattr("console.jobs.engine.send", lambda *_, **__: None)
    setting = reports.setting()
    letter = letters.dead("orders", 10, "ID:10")
    job = ReplayJob.objects.create(setting=setting, setting_key="orders", scope="all", state="running")
    action = WaitingAction.objects.create(
        setting=setting, setting_key="orders", kind="try_now", part="delayed"
    )
    fault, taking = (
        KnownFault.objects.create(setting_key="orders"),
        Taking.objects.create(setting_key="orders"),
    )
    foreign = LetterQueue.objects.create(queue="OTHER.DLQ", address="OTHER.DLQ", foreign=True)
    return {
        "replay": job.pk, "waiting-action": action.pk, "waiting_action": action.pk,
        "message_action": action.pk,
        "known-fault": fault.pk, "known_fault": fault.pk, "taking": taking.pk, "foreign": foreign.pk,
        "": letter.pk,
    }  # fmt: skip


def arguments(pattern: URLPattern, known: dict[str, Any]) -> dict[str, Any]:
    """For the names in its address."""
    begin = max((each for each in known if str(pattern.name).startswith(each)), key=len)
    values = {"key": "orders", "pk": known[begin]}
    names = pattern.pattern.converters
    if "pk" in names and type(names["pk"]).__name__ == "UUIDConverter" and not hasattr(values["pk"], "hex"):
        values["pk"] = uuid4()
    return {name: values[name] for name in names}


def pages(known: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for pattern in consoles.urls(lambda view: view):
        operation = getattr(pattern.callback, "view_initkwargs", {}).get("operation", pattern.callback)
        if operation.__module__.startswith(MODULES):
            yield str(pattern.name), reverse(f"admin:{pattern.name}", kwargs=arguments(pattern, known))


def addresses(known: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    saved: list[Any] = [each for each in failures.urlpatterns if "/saved/" in str(each.pattern)]
    for pattern in [*urlpatterns, *saved]:
        view: Any = pattern.callback
        taken = getattr(view, "actions", None) or dir(view.cls)
        for method in METHODS:
            if method in taken:
                yield str(pattern.name), method, reverse(str(pattern.name), kwargs=arguments(pattern, known))


def refused_by(person: User) -> int:
    return AuditEntry.objects.filter(by=person, result="refused").count()


def without_words() -> set[str]:
    """What nobody could choose on the page of the audit."""
    return set(AuditEntry.objects.values_list("action", flat=True)) - ACTIONS.keys()


SAID: dict[str, Any] = {
    "reason": "x", "letters": "1", "letter": "1", "setting": "orders", "of": "setting", "text": "x",
    "to": "x", "kind": "hold", "part": "waiting", "all": "1",
}  # fmt: skip


def test_every_page_that_does_something_keeps_who_was_refused(known: dict[str, Any]) -> None:
    outsider = reports.person("outsider")
    client = Client(raise_request_exception=True)
    client.force_login(outsider)
    tried, missed = [], []
    for name, url in pages(known):
        before = refused_by(outsider)
        answer = client.post(url, SAID)
        if answer.status_code == NOT_TAKEN or name in NO_ACTION:
            continue
        tried.append(name)
        if answer.status_code not in (403, 404) or refused_by(outsider) != before + 1:
            missed.append((name, answer.status_code, refused_by(outsider) - before))
    assert not missed, "\n".join(map(str, missed))
    assert without_words() == set()
    assert {
        "give_back",
        "redirect",
        "discard",
        "put_back",
        "edit_letter",
        "waiting_ask",
        "replay_approve",
        "saved_filter_delete",
        "saved_view_delete",
    } <= {*tried}


def test_every_address_that_does_something_keeps_who_was_refused(known: dict[str, Any]) -> None:
    outsider = reports.person("outsider")
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=reports.bearer_of(outsider)["Authorization"])
    said: dict[str, dict[str, Any]] = {
        "replays": {"setting": "orders", "all": True},
        "dead-letters-edit": {
            "setting": "orders",
            "all": True,
            "rule": [{"op": "remove_property", "name": "x"}],
        },
        "waiting": {"action": "try_now", "part": "delayed", "all": True},
        "foreign-queues": {"queue": "X.DLQ", "address": "X.DLQ"},
        "imports": {"setting": "orders", "lines": "{}"},
        "notes": {"setting": "orders", "text": "x"},
        "known-faults": {"setting": "orders", "ticket": "x"},
        "takings": {"setting": "orders"},
        "taking-hand-over": {"to": "outsider"},
    }
    tried, missed = [], []
    for name, method, url in addresses(known):
        if name in NO_ACTION:
            continue
        before = refused_by(outsider)
        answer = getattr(client, method)(url, said.get(name, {}), format="json")
        tried.append(name)
        if answer.status_code not in (403, 404) or refused_by(outsider) != before + 1:
            missed.append(
                (name, method, answer.status_code, refused_by(outsider) - before, answer.content[:200])
            )
    assert not missed, "\n".join(map(str, missed))
    assert without_words() == set()
    assert {"replays", "replay-approve", "dead-letter-edit", "waiting", "foreign-queues"} <= {*tried}
    assert {"saved-filters", "saved-filter", "saved-views", "saved-view"} <= {*tried}
    assert ReplayJob.objects.get().state == "running" and DeadLetter.objects.get().state == "dead"
    assert LaunchSetting.objects.count() == 1 and not AuditEntry.objects.filter(result="done").exists()
