"""An address that answers 429, 500, hangs, redirects or closes: what is kept, and when it is asked again."""

import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from alerts.notices import http
from alerts.notices.channels.request import OutgoingRequest
from alerts.notices.http import LONGEST_WAIT, Undelivered, post, wait_asked_for
from tests.web.listeners import CLOSES, DRIPS, Hook, listening_hook
from tests.web.rows import NOW

pytestmark = pytest.mark.process
SECRET = "xoxb-1234"


@pytest.fixture
def hook() -> Iterator[Hook]:
    with listening_hook() as hook:
        yield hook


def problem_of(url: str) -> Undelivered:
    with pytest.raises(Undelivered) as raised:
        post(OutgoingRequest(url, b"{}"), NOW)
    return raised.value


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_each_2xx_means_that_it_arrived(hook: Hook, status: int) -> None:
    hook.answers = [status]

    post(OutgoingRequest(hook.url, b'{"a": 1}', {"MA-Event": "test"}), NOW)

    ((_path, headers, body),) = hook.heard
    assert (body, headers["Content-Type"], headers["MA-Event"]) == (b'{"a": 1}', "application/json", "test")


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        ((429, "120"), timedelta(seconds=120)),
        ((503, "7"), timedelta(seconds=7)),
        ((429, "999999999999"), LONGEST_WAIT),
        ((429, "-5"), timedelta()),
        ((429, "soon"), timedelta()),
        ((500, "120"), timedelta()),
        (429, timedelta()),
        (400, timedelta()),
        (404, timedelta()),
    ],
)
def test_what_is_refused_names_the_status_and_the_wait(
    hook: Hook, answer: int | tuple[int, str], wait: timedelta
) -> None:
    hook.answers = [answer]

    problem = problem_of(hook.url)

    status = answer[0] if isinstance(answer, tuple) else answer
    assert (str(problem), problem.wait) == (f"answered {status}", wait)


@pytest.mark.parametrize(
    ("asked", "wait"),
    [
        (timedelta(minutes=5), timedelta(minutes=5)),
        (timedelta(minutes=-5), timedelta()),
        (timedelta(days=5), LONGEST_WAIT),
    ],
)
def test_a_date_to_wait_for_is_bounded(asked: timedelta, wait: timedelta) -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)

    assert wait_asked_for(format_datetime(now + asked, usegmt=True), now) == wait


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_no_redirect_is_followed(hook: Hook, status: int) -> None:
    hook.answers = [status]

    assert "redirects are not followed" in str(problem_of(hook.url))
    assert [path for path, _headers, _body in hook.heard] == ["/told/"]


def test_a_connection_that_closes_is_a_problem_without_the_address(hook: Hook) -> None:
    hook.answers = [CLOSES]

    problem = problem_of(hook.url + SECRET)

    assert "ConnectionError" in str(problem) and SECRET not in str(problem)


def test_a_password_of_the_address_is_sent_and_not_told(hook: Hook) -> None:
    hook.answers = [200, 500]
    address = hook.url.replace("http://", f"http://ma:{SECRET}@")

    post(OutgoingRequest(address, b"{}"), NOW)
    problem = problem_of(address)

    _path, headers, _body = hook.heard[0]
    assert headers["Authorization"].startswith("Basic ") and SECRET not in str(problem)
    assert SECRET not in str(problem_of(f"http://ma:{SECRET}@127.0.0.1:1/"))


def test_an_address_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        problem = problem_of(f"http://127.0.0.1:{listening.getsockname()[1]}/{SECRET}")

    # Of both bounds either may be the first.
    assert any(said in str(problem) for said in ("no whole answer within 0.2 s", "timed out"))
    assert SECRET not in str(problem)


@pytest.mark.timeout(20)
def test_an_answer_that_comes_a_byte_at_a_time_is_given_up(
    hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "ANSWER_SECONDS", 0.5)
    hook.answers = [DRIPS]

    problem = problem_of(hook.url + SECRET)

    assert SECRET not in str(problem)
