"""A proxy that the settings do not name, and settings that name everybody: doctor says so."""

from ipaddress import ip_network
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from ma_site.checks.finding import run_checks

pytestmark = pytest.mark.django_db(transaction=True)


def sign_in(**meta: str) -> None:
    Client().post("/login/", {"username": "nobody", "password": "wrong"}, **meta)  # type: ignore[arg-type]


def complaints(word: str) -> list[str]:
    return [each.detail for each in run_checks(timezone.now()) if not each.ok and word in each.detail]


def test_doctor_tells_of_a_proxy_that_nobody_trusts_until_it_is_named(settings: Any) -> None:
    sign_in(REMOTE_ADDR="10.0.0.9")
    assert complaints("X-Forwarded-For") == []
    sign_in(REMOTE_ADDR="10.0.0.9", HTTP_X_FORWARDED_FOR="198.51.100.4")
    told = complaints("X-Forwarded-For")
    assert len(told) == 1 and "10.0.0.9" in told[0]
    settings.MA_TRUSTED_PROXIES = (ip_network("10.0.0.0/8"),)
    assert complaints("X-Forwarded-For") == []


def test_doctor_tells_where_every_address_is_a_proxy(settings: Any) -> None:
    settings.MA_TRUSTED_PROXIES = (ip_network("0.0.0.0/0"),)
    assert len(complaints("MA_TRUSTED_PROXIES contains every address")) == 1
