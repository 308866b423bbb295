"""What apps register with the console: twice is once, in their order."""

import pytest
from django.http import HttpRequest
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from console.tokens.authentication import bearer
from console.ui import page


def nothing(*_: object) -> None:
    return None


def nothing_else(*_: object) -> None:
    return None


def test_a_panel_that_is_registered_twice_is_shown_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_registered", {name: [] for name in page._registered})
    for order, function in ((2, nothing), (1, nothing_else), (2, nothing)):
        page.register_panel("setting", order, function)
    assert [entry.function for entry in page._registered["setting"]] == [nothing_else, nothing]


def test_a_page_that_is_added_twice_has_one_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_views", [])
    for _ in range(2):
        page.add_page("somewhere/", nothing, "somewhere")  # type: ignore[arg-type]
    assert [pattern.name for pattern in page.urls(lambda view: view)] == ["somewhere"]


@pytest.mark.parametrize(
    ("header", "token"), [(None, ""), ("Basic abc", ""), ("Bearer ma_1", "ma_1"), ("bearer ma_1", "ma_1")]
)
def test_a_token_is_what_follows_bearer(header: str | None, token: str) -> None:
    assert bearer(with_header(header)) == token


@pytest.mark.parametrize("header", ["Bearer", "Bearer ma_1 ma_2"])
def test_nonsense_after_bearer_is_refused(header: str) -> None:
    with pytest.raises(AuthenticationFailed):
        bearer(with_header(header))


def with_header(value: str | None) -> Request:
    request = HttpRequest()
    if value is not None:
        request.META["HTTP_AUTHORIZATION"] = value
    return Request(request)
