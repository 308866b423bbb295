"""Requests to the routes of dead letters and waiting messages, each on rows of its own."""

import os
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agents.models import Activation, Run
from broker.management.desired_topology import Queue, setting_topology
from broker.management.topology import apply
from broker.port import Outgoing
from console import broker
from console.models import SavedFilter
from contract.messages import BlockedMessage
from contract.typed import Typed
from contract.wire import dump
from dlq.models import DeadLetter, KnownFault, LetterQueue, ReplayJob, Taking, WholeFetch
from dlq.models.message_action import WaitingAction
from dlq.replay.preflight.rules import CODES
from dlq.subscriptions.operations import mark_of
from tests.web import letters, reports
from tests.web.unsafe_routes import PASSWORD, Ask
from tests.web.waiting import DLA, HOURS, WaitingHouse

KEY, BLOCKED = "orders", "ID:poison"
LINE = '{"body": {"text": "{\\"sum\\": 1}"}, "message": {}}'
REST = "/api/v1"
# What is done to a job, and the state of one to which it can be done.
JOBS = (
    ("approve", "awaiting"),
    ("refuse", "awaiting"),
    ("pause", "running"),
    ("resume", "paused"),
    ("release", "running"),
    ("cancel", "running"),
)


class Publisher:
    """Takes what is imported."""

    def publish(self, messages: Sequence[Outgoing]) -> None: ...

    def close(self) -> None: ...


class Rows:
    """`other` asked for what needs a second person."""

    def __init__(self, person: User, monkeypatch: pytest.MonkeyPatch) -> None:
        self.person = person
        self.other = User.objects.create_superuser("other", password=None)
        self.setting = reports.setting(KEY)
        self.house = WaitingHouse(self.setting)
        places = ("api.subscriptions", "pages.subscriptions", "pages.message_actions")
        self.house.answers(monkeypatch, *(f"dlq.{place}.management" for place in places))
        monkeypatch.setattr("dlq.imports.operations.AmqpPublisher", lambda _account: Publisher())
        for module in ("dlq.pages.dead_letters.full_body", "dlq.api.full_body", "dlq.full_body.operations"):
            monkeypatch.setattr(f"{module}.message_count", lambda _queue: 1200)
        monkeypatch.setattr(broker, "_connection", self.house.management)
        monkeypatch.setattr(broker, "_process", os.getpid())
        self.house.management.call("broker", "createAddress", "THEIRS", "MULTICAST")
        apply(self.house.management, [Queue("theirs", "THEIRS")])
        self.house.publish("w1", "w2")
        reports.setting("mirror", destination=self.setting.destination)
        apply(self.house.management, setting_topology("mirror", self.house.address, HOURS, False, DLA))
        self.letter, self.fetched = (self._letter(number) for number in (10, 11))
        WholeFetch.objects.create(letter=self.fetched)
        self.in_bin = self._letter(12, queue="DLQ.bin", orig_queue=f"DLQ.{KEY}")
        self._blocked()

    def _letter(self, number: int, **fields: Any) -> DeadLetter:
        row = letters.dead(KEY, number, f"ID:{number}", Typed("string", '{"sum": 1}'))
        node = str(self.house.management.attribute("broker", "NodeID"))
        facts = {"truncated": number != 10, "size": 3_000_000, "node_id": node}
        DeadLetter.objects.filter(pk=row.pk).update(**facts | fields)
        return row

    def _blocked(self) -> None:
        setting = reports.setting("row", ordered=True, spread="MANY", mode="AUTO", blocked_seconds=-1.0)
        server = reports.server()
        server.last_seen_at = timezone.now()
        server.save()
        activation = Activation.objects.create(setting=setting, state="running")
        run = Run.objects.create(activation=activation, server=server, epoch=1)
        told = {"blocked": dump(BlockedMessage(BLOCKED, 3)), "reported_at": timezone.now()}
        Run.objects.filter(pk=run.pk).update(**told)

    def job(self, state: str) -> object:
        """It holds a subscription."""
        now = timezone.now()
        held = {"in_order": "ahead", "hold": "held", "held_at": now, "hold_until": now + timedelta(hours=1)}
        return ReplayJob.objects.create(
            setting=self.setting, setting_key=KEY, scope="all", state=state, by=self.other, needs_second=True,
            **held,
        ).pk  # fmt: skip

    def action(self) -> object:
        return WaitingAction.objects.create(
            setting=self.setting, setting_key=KEY, kind="try_now", part="delayed", by=self.other
        ).pk

    def known(self, model: Any, **fields: Any) -> object:
        return model.objects.create(**fields).pk

    def requests(self) -> Iterator[Ask]:
        """Each comes with the rows that it needs alone."""
        yield from self._rest()
        yield from self._pages()

    def _rest(self) -> Iterator[Ask]:
        letter, ticked = self.letter.pk, {"acknowledge": [*CODES]}
        fault, taking = {"setting_key": KEY}, {"setting_key": KEY, "by": self.person}
        named = {"name": "keys", "query": "exception=Key"}
        yield Ask(f"POST {REST}/dead-letters/{{id}}/edit/", [letter], {"body": {"text": "{}"}} | ticked)
        rule = [{"op": "set_json", "pointer": "/sum", "value": 2}]
        yield Ask(
            f"POST {REST}/dead-letters/edit/",
            said={"setting": KEY, "letters": [letter], "rule": rule} | ticked,
        )
        yield Ask(f"POST {REST}/dead-letters/{{id}}/whole/", [self._letter(13).pk])
        yield Ask(f"DELETE {REST}/dead-letters/{{id}}/whole/", [self.fetched.pk])
        yield Ask(f"POST {REST}/foreign-queues/", said={"queue": "theirs"})
        foreign = {"queue": "OLD", "address": "OLD", "foreign": True}
        yield Ask(f"DELETE {REST}/foreign-queues/{{id}}/", [self.known(LetterQueue, **foreign)])
        yield Ask(f"POST {REST}/imports/", said={"setting": KEY, "lines": LINE, "dry_run": False})
        yield Ask(f"POST {REST}/known-faults/", said={"setting": KEY, "fingerprint": "f" * 64})
        yield Ask(f"POST {REST}/known-faults/{{id}}/end/", [self.known(KnownFault, **fault)])
        yield Ask(f"POST {REST}/notes/", said={"setting": KEY, "message_key": "ID:10", "text": "x"})
        replay = {"action": "give_back", "setting": KEY, "letters": [letter]}
        yield Ask(f"POST {REST}/replays/", said=replay | ticked)
        for act, state in JOBS:
            yield Ask(f"POST {REST}/replays/{{id}}/{act}/", [self.job(state)], {"reason": "x"})
        yield Ask(f"POST {REST}/saved-filters/", said=named)
        mine = {"list": "dead_letters", "owner": self.person, **named}
        yield Ask(f"PATCH {REST}/saved-filters/{{id}}/", [self.known(SavedFilter, **mine)], {"shared": True})
        yield Ask(f"DELETE {REST}/saved-filters/{{id}}/", [self.known(SavedFilter, **mine)])
        blocked = {"message_key": BLOCKED, "attempt": 3, "reason": "x"}
        yield Ask(f"POST {REST}/settings/{{key}}/blocking/", ["row"], blocked)
        held = {"action": "hold", "part": "waiting", "reason": "x", "messages": self.house.numbers("waiting")}
        yield Ask(f"POST {REST}/settings/{{key}}/waiting/", [KEY], held)
        yield Ask(f"POST {REST}/waiting-actions/{{id}}/stop/", [self.action()])
        yield Ask(f"POST {REST}/takings/", said={"setting": KEY, "text": "mine"})
        yield Ask(f"POST {REST}/takings/{{id}}/end/", [self.known(Taking, **taking)])
        yield Ask(f"POST {REST}/takings/{{id}}/hand-over/", [self.known(Taking, **taking)], {"to": "other"})

    def _pages(self) -> Iterator[Ask]:
        letter, ticked = self.letter.pk, {"acknowledge": [*CODES]}
        moved = {"letter": letter, "reason": "x"} | ticked
        of_key = "/dead-letters/<str:key>"
        yield Ask(f"POST {of_key}/give-back/", [KEY], moved)
        yield Ask(f"POST {of_key}/redirect/", [KEY], moved | {"target": "mirror"})
        yield Ask(f"POST {of_key}/discard/", [KEY], moved | {"confirm": "1"})
        yield Ask(f"POST {of_key}/put-back/", [KEY], moved | {"letter": self.in_bin.pk})
        rule = '[{"op": "set_json", "pointer": "/sum", "json": "2"}]'
        yield Ask(
            f"POST {of_key}/edit/", [KEY], {"rule": rule, "step": "confirm", "letters": letter} | ticked
        )
        yield Ask(f"POST {of_key}/import/", [KEY], {"step": "confirm", "lines": LINE, "known": "1"})
        changes = '{"other_form": false, "remove": [], "set": [], "body": {"text": "{}"}}'
        yield Ask("POST /letters/<int:pk>/edit/", [letter], {"changes": changes, "step": "confirm"} | ticked)
        yield Ask("POST /letters/<int:pk>/whole/", [self._letter(14).pk])
        yield Ask("POST /letters/<int:pk>/whole/cancel/", [self.fetched.pk])
        yield Ask("POST /foreign-queues/", said={"queue": "theirs"})
        foreign = {"queue": "OLD", "address": "OLD", "foreign": True}
        yield Ask("POST /foreign-queues/<int:pk>/forget/", [self.known(LetterQueue, **foreign)])
        about = {"setting": KEY, "fingerprint": "v1:68df51d668124004", "of": "setting", "text": "x"}
        for act in ("note", "mute", "take"):
            yield Ask(f"POST /remarks/{act}/", said=about)
        fault, taking = {"setting_key": KEY}, {"setting_key": KEY, "by": self.person}
        yield Ask("POST /remarks/faults/<int:pk>/end/", [self.known(KnownFault, **fault)])
        yield Ask("POST /remarks/takings/<int:pk>/end/", [self.known(Taking, **taking)])
        yield Ask(
            "POST /remarks/takings/<int:pk>/hand-over/", [self.known(Taking, **taking)], {"to": "other"}
        )
        for act, state in JOBS:
            yield Ask(f"POST /replays/<uuid:pk>/{act}/", [self.job(state)], {"reason": "x"})
        named = {"name": "keys", "query": "exception=Key"}
        yield Ask("POST /saved-filters/save/", said=named)
        mine = {"list": "dead_letters", "owner": self.person, **named}
        change, delete = "POST /saved-filters/<int:pk>/change/", "POST /saved-filters/<int:pk>/delete/"
        yield Ask(change, [self.known(SavedFilter, **mine)], {"name": "others", "shared": "1"})
        yield Ask(delete, [self.known(SavedFilter, **mine)])
        numbers = ",".join(map(str, self.house.numbers("waiting")))
        held = {"kind": "hold", "part": "waiting", "number": numbers, "asked": "2", "reason": "x"}
        yield Ask("POST /settings/<str:key>/waiting/ask/", [KEY], held)
        blocked = {"seen": mark_of(BlockedMessage(BLOCKED, 3)), "reason": "x"}
        yield Ask("POST /settings/<str:key>/waiting/give-up/", ["row"], blocked)
        yield Ask("POST /waiting-actions/<uuid:pk>/stop/", [self.action()])
        yield Ask("POST /login/", said={"username": "root", "password": PASSWORD})
        yield Ask("POST /logout/")
