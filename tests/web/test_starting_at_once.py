"""Starts, plans and ends by several processes at the same instant."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import connection

from agents import hooks
from agents.activations.end import end_activations, set_ending
from agents.activations.operations import run_now
from agents.activations.plan import plan_runs
from agents.models import Activation, Ending, LaunchSetting, OfferedAgent, Pool, Run, Server, StateChange
from console.operations.refusals import Refused
from tests.web.rows import NOW, make_alive, make_setting

pytestmark = [pytest.mark.both_databases, pytest.mark.django_db(transaction=True)]


def at_once(*acts: Callable[[], Any]) -> list[Any]:
    """What each answers or raises."""
    together, answers = threading.Barrier(len(acts)), []

    def act(call: Callable[[], Any]) -> None:
        try:
            together.wait(10)
            answers.append(call())
        except Exception as error:
            answers.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=act, args=(call,)) for call in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers


@pytest.fixture
def delayed() -> LaunchSetting:
    server, pool = Server.objects.create(name="srv-1"), Pool.objects.create(name="demo")
    pool.servers.add(server)
    make_alive(server, now=NOW)
    OfferedAgent.objects.update(kind="standalone")
    return make_setting(pool, timing="DELAYED", enabled=True, kind="standalone")


def test_of_several_starts_one_begins(delayed: LaunchSetting) -> None:
    answers = at_once(*[lambda: run_now(delayed, None, NOW)] * 4)

    assert sum(isinstance(answer, Activation) for answer in answers) == 1, answers
    assert all(isinstance(answer, (Activation, Refused)) for answer in answers), answers
    assert Activation.objects.count() == 1


def test_of_several_ends_one_is_made_and_followed(
    delayed: LaunchSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    heard = [lambda activation, now: told.append(activation.pk)]
    monkeypatch.setattr(hooks.activation_ended, "_implementations", heard)
    activation = run_now(delayed, None, NOW)
    Run.objects.update(state="finished", closed_at=NOW)
    answers = at_once(*[lambda: end_activations(NOW)] * 4)

    assert answers.count(1) <= 1 and not [answer for answer in answers if isinstance(answer, Exception)], (
        answers
    )
    end_activations(NOW)
    assert told == [activation.pk]
    assert StateChange.objects.filter(what="activation", new="succeeded").count() == 1


def test_an_ending_and_a_planner_leave_nothing_wanted(delayed: LaunchSetting) -> None:
    for _ in range(5):
        activation = Activation.objects.create(setting=delayed, started_at=NOW)
        plan, end = (
            partial(plan_runs, activation.pk, NOW),
            partial(set_ending, activation, Ending.DRAINED, NOW),
        )
        answers = at_once(plan, end)
        assert not [answer for answer in answers if isinstance(answer, Exception)], answers
        assert not Run.objects.filter(wanted=True).exists()
        Run.objects.update(state="finished", closed_at=NOW)
        end_activations(NOW)
