"""A URL with several servers of PostgreSQL: one that takes writes will do."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from console.database.storage import jdbc_url
from ma_site import env
from ma_site.service_urls import parse_database
from tests import environment

TWO = "postgresql://u:p%40w@db-1:5433,db-2/ma"


def test_libpq_is_given_them_all_and_takes_one_that_writes() -> None:
    found = parse_database(TWO)
    assert (found["HOST"], found["PORT"], found["PASSWORD"]) == ("db-1,db-2", "5433,5432", "p@w")
    assert found["OPTIONS"] == {"target_session_attrs": "read-write", "sslmode": "verify-full"}


def test_of_one_server_it_is_asked_where_the_url_says_so() -> None:
    one = "postgresql://u:p@127.0.0.1:5433/ma"
    assert parse_database(one)["OPTIONS"] == {}
    found = parse_database(f"{one}?target_session_attrs=primary")
    assert found["OPTIONS"] == {"target_session_attrs": "primary"}


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://u:p@db-1,,db-2/ma", "comma without a host"),
        ("postgresql://u:p@db-1,/ma", "comma without a host"),
        ("postgresql://u:p@db-1,db-1:5432/ma", "twice"),
        ("postgresql://u:p@db-1:x,db-2/ma", "Port"),
        (f"{TWO}?target_session_attrs=any", "must be one of read-write, primary"),
        (f"{TWO}?target_session_attrs=standby", "must be one of read-write, primary"),
        (f"{TWO}?target_session_attrs=", "must be one of read-write, primary"),
    ],
)
def test_what_would_not_work_is_refused(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_database(url)


def test_the_driver_of_java_gets_them_too() -> None:
    assert jdbc_url(parse_database(TWO)).startswith("jdbc:postgresql://db-1:5433,db-2:5432/ma?")
    assert "targetServerType=primary" in jdbc_url(parse_database(TWO))
    assert "targetServerType" not in jdbc_url(parse_database("postgresql://u:p@db-1/ma"))


def test_one_that_is_far_is_not_spoken_to_in_clear_because_the_other_is_near() -> None:
    url = "postgresql://u:p@127.0.0.1:5432,db-2:5432/ma?sslmode=prefer"
    with pytest.raises(ImproperlyConfigured, match="MA_ALLOW_UNENCRYPTED"):
        env.read(environment.VALUES | {"MA_DATABASE_URL": url})
    env.read(environment.VALUES | {"MA_DATABASE_URL": url, "MA_ALLOW_UNENCRYPTED": "database"})
