"""Whoever guesses passwords is slowed down, nobody can lock somebody else out, and the audit knows who signed
in."""

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from console.audit.models import AuditEntry

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
THERE, HERE = "203.0.113.7", "198.51.100.4"
NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def person(db: None) -> User:
    return User.objects.create_superuser("anna", password=PASSWORD)


@pytest.fixture(autouse=True)
def one_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """No delay is over before the test is, however busy the machine."""
    now = datetime.now(UTC)
    monkeypatch.setattr("django.utils.timezone.now", lambda: now)


def attempt(password: str, address: str = THERE, name: str = "anna", **headers: str) -> Any:
    data = {"username": name, "password": password}
    return Client().post("/login/", data, REMOTE_ADDR=address, headers=headers)


def test_whoever_guesses_is_told_when_to_come_again() -> None:
    codes = [attempt("wrong").status_code for _ in range(8)]
    late = attempt(PASSWORD)

    assert codes[:5] == [200] * 5 and codes[5:] == [429] * 3
    assert late.status_code == 429 and int(late.headers["Retry-After"]) >= 1
    assert "Too many sign-in attempts" in late.content.decode()
    russian = attempt(PASSWORD, **{"Accept-Language": "ru"})
    assert "Слишком много попыток входа" in russian.content.decode()


def test_a_right_password_from_another_address_is_let_in_however_much_is_guessed() -> None:
    for last in range(40):
        attempt("wrong", f"203.0.113.{last}")
        attempt("wrong")
    assert attempt(PASSWORD).status_code == 429

    assert attempt(PASSWORD, HERE).status_code == 302


def test_an_address_that_tries_many_accounts_is_slowed_down() -> None:
    codes = [attempt("wrong", name=f"person-{n}").status_code for n in range(25)]

    assert codes.count(429) >= 3
    assert attempt(PASSWORD, HERE).status_code == 302


def test_an_account_that_is_guessed_from_everywhere_gives_new_addresses_one_guess() -> None:
    for last in range(25):
        attempt("wrong", f"203.0.113.{last}")

    assert [attempt("wrong", HERE).status_code for _ in range(3)] == [200, 200, 429]


def test_networks_of_one_person_count_together_and_forwarded_addresses_are_not_believed() -> None:
    codes = [attempt("wrong", f"2001:db8:1:2::{n:x}").status_code for n in range(8)]
    assert 429 in codes
    codes = [attempt("wrong", HERE, **{"X-Forwarded-For": f"192.0.2.{n}"}).status_code for n in range(8)]
    assert 429 in codes


def test_a_proxy_that_the_settings_name_is_believed(settings: Any) -> None:
    from ipaddress import ip_network

    settings.MA_TRUSTED_PROXIES = (ip_network("10.0.0.0/8"),)
    codes = [
        attempt("wrong", "10.1.1.1", **{"X-Forwarded-For": f"192.0.2.{n}, 10.2.2.2"}).status_code
        for n in range(8)
    ]
    assert codes == [200] * 8
    codes = [
        attempt("wrong", "10.1.1.1", **{"X-Forwarded-For": f"9.9.9.{n}, 192.0.2.99"}).status_code
        for n in range(8)
    ]
    assert 429 in codes


def test_signing_in_and_out_and_failing_is_in_the_audit_with_address_and_client() -> None:
    long = "x" * 5000
    attempt("wrong secret", HERE, name=long, **{"User-Agent": "curl"})
    client = Client(REMOTE_ADDR=HERE, headers={"User-Agent": "browser"})
    client.post("/login/", {"username": "anna", "password": PASSWORD})
    client.post("/logout/")

    rows = list(
        AuditEntry.objects.order_by("pk").values_list("action", "result", "by_name", "detail", "target")
    )
    assert [row[:4] for row in rows] == [
        ("sign_in", "failed", "", {"address": HERE, "client": "curl"}),
        ("sign_in", "done", "anna", {"address": HERE, "client": "browser"}),
        ("sign_out", "done", "anna", {"address": HERE, "client": "browser"}),
    ]
    assert len(rows[0][4]) <= 160 and "wrong secret" not in str(rows)


def test_a_token_that_is_refused_is_logged_with_its_address(caplog: pytest.LogCaptureFixture) -> None:
    Client().get("/api/v1/settings/", REMOTE_ADDR=HERE, headers={"Authorization": "Bearer ma_guessed"})

    said = [str(record.msg) for record in caplog.records if "token refused" in str(record.msg)]
    assert len(said) == 1 and HERE in said[0] and "guessed" not in said[0]


@pytest.mark.django_db(transaction=True)
def test_guesses_that_are_sent_at_once_count_one_by_one() -> None:
    codes = []

    def guess() -> None:
        try:
            codes.append(attempt("wrong").status_code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=guess) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert codes.count(200) == 5 and codes.count(429) == 11


def test_counters_are_forgotten_after_an_hour() -> None:
    from agents.models import SignInCounter
    from ma_site.requests.sign_in import TooManyFailures, begin_attempt, forget_old_counters

    with pytest.raises(TooManyFailures) as refused:
        for _ in range(10):
            begin_attempt(HERE, "anna", NOW)
    assert refused.value.wait == timedelta(seconds=2)
    begin_attempt(HERE, "anna", NOW + timedelta(hours=2))
    forget_old_counters(NOW + timedelta(hours=2))
    assert SignInCounter.objects.count() == 3
    forget_old_counters(NOW + timedelta(hours=4))
    assert SignInCounter.objects.count() == 0


@pytest.mark.parametrize(("failures", "seconds"), [(4, 0), (5, 2), (6, 4), (9, 32), (30, 900), (4000, 900)])
def test_delays_double_up_to_a_quarter_of_an_hour(failures: int, seconds: int) -> None:
    from ma_site.requests.sign_in import delay

    assert delay(failures, 4) == timedelta(seconds=seconds)
