"""Who does what asks the broker while Redis, beat or the worker is away."""

from datetime import timedelta

import pytest

from agents.services import standing_in
from agents.services.signs import sign_of_life
from agents.services.standing_in import stand_in_at_broker
from tests.web.rows import NOW


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The steps that were done."""
    found: list[str] = []
    monkeypatch.setattr(standing_in, "watch_drains", lambda now: found.append("drains"))
    monkeypatch.setattr(standing_in, "provision_due", lambda now: found.append("provisioning"))
    return found


@pytest.mark.django_db
def test_nothing_is_done_while_beat_gives_signs_or_never_gave_one(done: list[str]) -> None:
    assert not stand_in_at_broker(NOW)
    sign_of_life("beat", NOW)
    assert not stand_in_at_broker(NOW + timedelta(seconds=15))
    assert done == []


@pytest.mark.django_db
def test_it_is_done_every_two_seconds_while_beat_is_away(done: list[str]) -> None:
    sign_of_life("beat", NOW)
    for tenth in range(160, 200):
        stand_in_at_broker(NOW + timedelta(seconds=tenth / 10))
    assert done == ["drains", "provisioning"] * 2
