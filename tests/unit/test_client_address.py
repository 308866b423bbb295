"""Which address a request is from, and when a proxy is unknown."""

import ipaddress

import pytest
from django.http import HttpRequest

from console.client_address import client_address, unknown_proxy

PROXY, OTHER_PROXY, CLIENT, STRANGER = "10.0.0.1", "10.0.0.2", "192.0.2.7", "198.51.100.9"


@pytest.fixture(autouse=True)
def proxies(settings: object) -> None:
    settings.MA_TRUSTED_PROXIES = [ipaddress.ip_network("10.0.0.0/30")]  # type: ignore[attr-defined]


def request(peer: str, forwarded: str | None = None) -> HttpRequest:
    found = HttpRequest()
    found.META["REMOTE_ADDR"] = peer
    if forwarded is not None:
        found.META["HTTP_X_FORWARDED_FOR"] = forwarded
    return found


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        (CLIENT, None, CLIENT),
        (CLIENT, STRANGER, CLIENT),
        (PROXY, CLIENT, CLIENT),
        (PROXY, f"{STRANGER}, {CLIENT}", CLIENT),
        (PROXY, f"{STRANGER}, {CLIENT}, {OTHER_PROXY}", CLIENT),
        (PROXY, OTHER_PROXY, OTHER_PROXY),
        (PROXY, None, PROXY),
        (PROXY, f"{CLIENT}, nonsense", PROXY),
        (PROXY, f"nonsense, {OTHER_PROXY}", OTHER_PROXY),
        ("unix:", CLIENT, "unix:"),
    ],
)
def test_only_proxies_that_the_settings_name_are_believed(
    peer: str, forwarded: str | None, address: str
) -> None:
    assert client_address(request(peer, forwarded)) == address


@pytest.mark.parametrize(
    ("peer", "forwarded", "unknown"),
    [(STRANGER, CLIENT, STRANGER), (STRANGER, None, ""), (PROXY, CLIENT, ""), ("", CLIENT, "")],
)
def test_an_address_that_nobody_believes_is_named(peer: str, forwarded: str | None, unknown: str) -> None:
    assert unknown_proxy(request(peer, forwarded)) == unknown
