"""What is answered to a request whose body is not read."""

import json

import pytest
from django.http import HttpRequest, HttpResponse

from ma_site.requests import middleware


def answer(path: str, **headers: str) -> HttpResponse | None:
    request = HttpRequest()
    request.path = request.path_info = path
    request.META.update(headers)
    found = middleware.refusal(request)
    assert found is None or isinstance(found, HttpResponse)
    return found


@pytest.mark.parametrize("path", ["/api/v1/settings/", "/no/such/page/"])
def test_small_bodies_are_read_and_long_ones_are_not(path: str) -> None:
    limit = middleware.limit_of_path(path)
    assert answer(path, CONTENT_LENGTH=str(limit)) is None
    assert answer(path) is None
    refused = answer(path, CONTENT_LENGTH=str(limit + 1))
    assert refused is not None and refused.status_code == 413


def test_who_calls_over_rest_gets_the_bound_as_a_number() -> None:
    refused = answer("/api/v1/nothing/", CONTENT_LENGTH=str(10**9))
    assert refused is not None
    assert json.loads(refused.content)["limit"] == middleware.limit_of_path("/api/v1/nothing/")


def test_a_body_without_its_length_is_not_read() -> None:
    for path in ("/api/v1/nothing/", "/nothing/"):
        refused = answer(path, HTTP_TRANSFER_ENCODING="chunked")
        assert refused is not None and refused.status_code == 411


def test_a_length_that_is_no_number_is_left_to_the_server() -> None:
    assert answer("/nothing/", CONTENT_LENGTH="many") is None


@pytest.mark.django_db
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"AUTHORIZATION": "Basic abc"},
        {"AUTHORIZATION": "Bearer ma_unknown"},
        {"COOKIE": "sessionid=unknown"},
        {"COOKIE": "other=1"},
    ],
)
def test_strangers_send_no_large_body(headers: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(middleware, "close_old_connections", lambda: None)
    assert not middleware.is_known_sender(headers)
