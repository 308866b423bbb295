"""A setting of many servers that is on and runs nowhere, because the one that could gave it up, is nobody's
secret."""

import pytest

from agents.models import Run, RunPhase
from tests.web.factories import World
from tests.web.pages import broker_answers, broker_figures, looked_at, signed_in
from tests.web.test_pages_breaker import panel

KEY = "orders-export"


@pytest.fixture(autouse=True)
def answering(monkeypatch: pytest.MonkeyPatch) -> None:
    broker_answers(monkeypatch, broker_figures(dead=0, waiting=0))
    monkeypatch.setattr("dlq.queues.queries.message_count", lambda queue: 0)


def others(world: World, **values: object) -> None:
    """What is so of its runs elsewhere than on srv-3, which gave it up."""
    runs = Run.objects.filter(activation=world.activations[KEY]).exclude(server__name="srv-3")
    assert runs.update(**values)


def test_the_overview_says_that_it_was_given_up_and_runs_nowhere(world: World) -> None:
    said = "interrupted on srv-3; no other server is running it"
    client = signed_in(world, "viewer")
    assert said not in looked_at(client, "/").text

    others(world, wanted=False, state=RunPhase.FINISHED, closed_at=world.now)
    assert said in looked_at(client, "/").text


def test_a_run_that_only_begins_is_none_that_runs(world: World) -> None:
    others(world, state=RunPhase.STARTING, problems=[])

    assert (
        "interrupted on srv-3; no other server is running it"
        in looked_at(signed_in(world, "viewer"), "/").text
    )


def test_the_panel_says_when_it_will_be_switched_off(world: World) -> None:
    others(world, wanted=False, state=RunPhase.FINISHED, closed_at=world.now)

    text = panel(world, KEY)

    assert (
        "The setting is interrupted on srv-3 and is not running on any other server. It will "
        "be disabled unless another suitable server becomes available within 60 s."
    ) in text
