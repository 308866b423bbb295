"""A token may bring so much in a minute and no more, whichever process it talks to; nothing is refused for
good."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from agents.models import Run, ServerToken
from contract.wire import dump
from failures.intake.batch import accept_batch
from failures.intake.rate_limit import MINUTE, MOST, Charge, Debt, Limits, TooFast
from failures.models import FailureProtocol, IntakeDebt, SpoolMark
from tests.web import reports
from tests.web.reports import Spool

pytestmark = pytest.mark.both_databases

URL = "/api/v1/protocols/"
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LIMITS = Limits(rows=60, bytes=6000)
NOTHING = Debt(NOW - timedelta(days=400), NOW - timedelta(days=400))


@pytest.mark.parametrize(
    ("rows", "size", "waits"),
    [
        (0, 0, -60),
        (30, 0, -30),
        (60, 6000, 0),
        (61, 0, 1),
        (0, 6100, 1),
        (90, 12000, 60),
        (10_000_000, 0, 240),  # MOST, less the minute that may be owed
    ],
)
def test_what_is_owed_is_worked_off_at_the_rate_of_the_limits(rows: int, size: int, waits: int) -> None:
    assert NOTHING.more(rows, size, LIMITS, NOW).wait(NOW) == timedelta(seconds=waits)


def test_a_clock_that_was_set_back_shuts_nobody_out() -> None:
    assert NOTHING.more(1, 1, LIMITS, NOW).wait(NOW - timedelta(days=400)) <= MOST


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 50)), max_size=200))
def test_no_minute_takes_more_than_two_minutes_worth_and_one_batch(asked: list[tuple[int, int]]) -> None:
    """Of a sender who tries again after every pause, in seconds, with so many rows."""
    debt, now, taken = NOTHING, NOW, []
    for pause, rows in asked:
        now += timedelta(seconds=pause)
        if debt.wait(now) <= timedelta(0):
            debt = debt.more(rows, 0, LIMITS, now)
            taken.append((now, rows))
    for begin, _ in taken:
        assert sum(rows for at, rows in taken if begin <= at < begin + MINUTE) <= 2 * LIMITS.rows + 50


@given(st.integers(1, 500))
def test_who_waits_as_long_as_told_is_taken(rows: int) -> None:
    debt = NOTHING.more(rows, 0, LIMITS, NOW)
    later = NOW + max(timedelta(0), debt.wait(NOW))
    assert debt.wait(later) <= timedelta(0)


@pytest.fixture
def run(db: None) -> Run:
    return reports.run(reports.setting(), reports.server())


def post(client: Client, run: Run, spool: Spool, token: dict[str, str], records: int = 1) -> Any:
    batch = spool.batch(*[reports.protocol(reports.run_of(run))] * records)
    return client.post(URL, json.dumps(dump(batch)).encode(), content_type="application/json", headers=token)


@pytest.mark.parametrize(("rows", "size"), [(10, 10**9), (10**9, 10_000)])
def test_above_its_limits_a_token_is_told_when_to_come_again(
    client: Client, run: Run, settings: Any, rows: int, size: int
) -> None:
    settings.MA_INTAKE_ROWS_PER_MINUTE, settings.MA_INTAKE_BYTES_PER_MINUTE = rows, size
    token, other, spool = (*(reports.bearer_of_server(run.server) for _ in range(2)), Spool())
    assert post(client, run, spool, token, 20).status_code == 200, (
        "a batch that is larger than the limit passes"
    )
    answer = post(client, run, spool, token)
    assert (answer.status_code, answer.json()["error"]) == (429, "throttled")
    assert 0 < int(answer.headers["Retry-After"]) <= 300
    assert FailureProtocol.objects.count() == 20
    assert post(client, run, spool, other).status_code == 200, "each token has its own"

    passed = timedelta(seconds=int(answer.headers["Retry-After"]))
    owed = IntakeDebt.objects.get(token__digest__in=_digests(token))
    owed.rows_until, owed.bytes_until = owed.rows_until - passed, owed.bytes_until - passed
    owed.save()
    assert post(client, run, spool, token).status_code == 200


def test_a_token_that_owes_too_much_is_refused_before_its_body_is_read(
    client: Client, run: Run, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MA_INTAKE_ROWS_PER_MINUTE = 1
    token, spool = reports.bearer_of_server(run.server), Spool()
    assert post(client, run, spool, token, 10).status_code == 200
    monkeypatch.setattr("failures.api.intake.RecordParser.parse", lambda *_: pytest.fail("the body was read"))
    assert post(client, run, spool, token).status_code == 429


def test_what_another_request_has_taken_meanwhile_counts(run: Run) -> None:
    """Both looked before either was stored."""
    token = ServerToken.objects.create(server=run.server, digest="x")
    of, limits = reports.run_of(run), Limits(rows=1, bytes=10**9)
    accept_batch(
        run.server, Spool().batch(*[reports.protocol(of)] * 3), NOW, charge=Charge(token, 10, limits)
    )
    with pytest.raises(TooFast):
        accept_batch(run.server, Spool().batch(reports.protocol(of)), NOW, charge=Charge(token, 10, limits))
    assert FailureProtocol.objects.count() == 3 and SpoolMark.objects.count() == 1, "refused whole"


def test_what_is_not_stored_is_not_owed(client: Client, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError

    monkeypatch.setattr("failures.intake.batch._add_to_runs", fail)
    assert post(client, run, Spool(), reports.bearer_of_server(run.server)).status_code == 500
    assert not IntakeDebt.objects.exists()


def _digests(token: dict[str, str]) -> list[str]:
    from console.models import digest_of

    return [digest_of(token["Authorization"].removeprefix("Bearer "))]
