"""The server that takes e-mail, as an address of the environment."""

import pytest

from ma_site.service_urls import Email, parse_database, parse_email


@pytest.mark.parametrize(
    ("url", "email"),
    [
        ("smtp://mail?from=ma@x.org", Email("mail", 25, "ma@x.org")),
        (
            "smtp+starttls://ma:p%40ss@mail:2525/?from=ma@x.org",
            Email("mail", 2525, "ma@x.org", "ma", "p@ss", "starttls"),
        ),
        ("smtps://mail/?from=ma@x.org", Email("mail", 465, "ma@x.org", security="tls")),
    ],
)
def test_they_are_read(url: str, email: Email) -> None:
    assert parse_email(url) == email


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://mail?from=ma@x.org", "must begin with smtp://"),
        ("smtp://mail/inbox?from=ma@x.org", "only ?from="),
        ("smtp://mail?from=ma@x.org&tls=1", "only ?from="),
        ("smtp://mail", "address of the sender"),
        ("smtp://mail?from=ma", "address of the sender"),
        ("smtp://mail?from=ma@x.org%0aBcc:all@x.org", "address of the sender"),
        ("smtp:///?from=ma@x.org", "needs a host"),
        ("smtp://ma@mail?from=ma@x.org", "a user and a password, or neither"),
    ],
)
def test_others_are_refused_with_what_is_wrong(url: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_email(url)
    assert said in str(refused.value)


def test_no_password_is_in_the_text_of_one() -> None:
    assert "secret" not in repr(parse_email("smtp://ma:secret@mail?from=ma@x.org"))


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://ma:a#b@host/ma", "%23"),
        ("postgresql://host/", "name of the database"),
        ("postgresql://host/ma?sslmode=verify-full&sslmode=disable", "duplicate"),
        ("postgresql://host/ma?sslmode=always", "must be one of"),
        ("postgresql://localhost/ma?sslrootcert=/ca.pem", "needs sslmode"),
        ("postgresql://host/ma?sslmode=verify-full&sslcert=/c.pem", "set together"),
        ("postgresql://host/ma?user=admin", "unknown parameters: user"),
        ("mysql://host/ma", "must begin with"),
    ],
)
def test_databases_are_refused_with_what_is_wrong(url: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:
        parse_database(url)
    assert said in str(refused.value)
