"""While the database is away pages and REST say so and when to come again, and come back by themselves: with
the real gunicorn and the real PostgreSQL."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
import requests

from deploy.services import postgres
from tests import migrated
from tests.web.real_site import PATIENCE, ROOT, Site, real_site, until

pytestmark = pytest.mark.process

HOST = {"Host": "testserver"}
# A session or a token sends the site to its database; the session need not exist.
SIGNED_IN = HOST | {"Cookie": f"sessionid={'a' * 32}"}
TOKEN = HOST | {"Authorization": "Bearer ma_nobody"}


def ask(site: Site, path: str, headers: dict[str, str], **more: str) -> requests.Response:
    return requests.get(site.url(path), headers=headers | more, timeout=PATIENCE, allow_redirects=False)


@pytest.fixture
def cluster() -> "postgres.Cluster":
    return postgres.start()


def test_pages_and_rest_say_when_to_come_again_and_come_back_by_themselves(cluster: postgres.Cluster) -> None:
    url = cluster.url()
    try:
        migrated.fill_database(url)
        with real_site(url) as site:
            assert (
                ask(site, "/", SIGNED_IN).status_code,
                ask(site, "/api/v1/settings/", TOKEN).status_code,
            ) == (
                302,
                401,
            )
            cluster.kill()

            english, russian = (
                ask(site, "/", SIGNED_IN),
                ask(site, "/", SIGNED_IN, **{"Accept-Language": "ru"}),
            )
            assert (english.status_code, russian.status_code) == (503, 503)
            assert english.headers["Retry-After"] == russian.headers["Retry-After"] == "10"
            assert "<h1>Database unavailable</h1>" in english.text
            assert "<h1>База данных недоступна</h1>" in russian.text
            told = ask(site, "/api/v1/settings/", TOKEN)
            assert (told.status_code, told.json()["error"]) == (503, "database_away")
            assert int(told.headers["Retry-After"]) > 0
            assert ask(site, "/healthz/", HOST).status_code == 503

            cluster.restart()
            until(lambda: ask(site, "/", SIGNED_IN).status_code == 302)
            assert ask(site, "/api/v1/settings/", TOKEN).status_code == 401
    finally:
        cluster.stop()


def test_a_large_batch_whose_sender_nobody_could_look_up_comes_again_whole(cluster: postgres.Cluster) -> None:
    """The database fails for the head of a request and works again before its body would be read: a KMA that
    is told 400 takes its batch apart and puts records aside."""
    url = cluster.url()
    environ = {**os.environ, "MA_DATABASE_URL": url}

    def manage(*arguments: str) -> str:
        command = [sys.executable, "manage.py", *arguments]
        return subprocess.run(
            command, cwd=ROOT, env=environ, check=True, capture_output=True, text=True
        ).stdout

    def send(site: Site, token: str) -> requests.Response:
        headers = HOST | {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        data = b" " * 1_100_000 + b"{}"
        return requests.post(site.url("/api/v1/protocols/"), data=data, headers=headers, timeout=60)

    try:
        migrated.fill_database(url)
        token = manage("create_server", "srv-1").split()[-1]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER DATABASE postgres SET lock_timeout = '1s'")
        with real_site(url) as site, ThreadPoolExecutor(1) as sender:
            assert send(site, token).json()["where"], "it is known, and what it sends is no batch"
            with psycopg.connect(url) as locking:
                locking.execute("LOCK TABLE agents_servertoken IN ACCESS EXCLUSIVE MODE")
                asked = sender.submit(send, site, token)
                until(lambda: b"database does not answer" in (site.folder / "log").read_bytes())
            answer = asked.result()
            assert (answer.status_code, answer.json()["error"]) == (503, "database_away"), answer.text
            assert answer.headers["Retry-After"] == "10"
            assert send(site, token).status_code == 400
    finally:
        cluster.stop()
