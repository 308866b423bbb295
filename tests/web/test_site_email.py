"""MA_EMAIL_URL is read strictly, and is not needed."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from ma_site import env
from ma_site.service_urls import Email
from tests.environment import VALUES


def email(url: str) -> Email | None:
    return env.read(VALUES | {"MA_EMAIL_URL": url}).email


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", None),
        ("smtp://mail:2525/?from=ma@example.org", Email("mail", 2525, "ma@example.org")),
        ("smtp://mail?from=ma@example.org", Email("mail", 25, "ma@example.org")),
        (
            "smtp+starttls://ann:p%40ss@mail/?from=ma@example.org",
            Email("mail", 587, "ma@example.org", "ann", "p@ss", "starttls"),
        ),
        ("smtps://mail/?from=ma@example.org", Email("mail", 465, "ma@example.org", security="tls")),
    ],
)
def test_what_it_says(url: str, expected: Email | None) -> None:
    assert email(url) == expected


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://mail/?from=ma@example.org", "must begin with"),
        ("smtp://mail/", "address of the sender"),
        ("smtp://mail/?from=nobody", "address of the sender"),
        ("smtp:///?from=ma@example.org", "needs a host"),
        ("smtp://mail:port/?from=ma@example.org", "Port"),
        ("smtp://ann@mail/?from=ma@example.org", "a user and a password"),
        ("smtp://mail/inbox?from=ma@example.org", "only"),
        ("smtp://mail/?from=ma@example.org&tls=1", "only"),
    ],
)
def test_what_is_wrong_stops_the_start_with_the_reason(url: str, reason: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"MA_EMAIL_URL.*{reason}"):
        email(url)


def test_the_password_is_in_no_repr() -> None:
    assert "hush" not in repr(
        env.read(VALUES | {"MA_EMAIL_URL": "smtp://ann:hush@mail/?from=ma@example.org"})
    )
