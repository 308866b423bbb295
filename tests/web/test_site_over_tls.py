"""A KMA and the real gunicorn over TLS: who is believed, what is said of whoever is not, what a browser is
told."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone

from agents.models import Server
from agents.servers.admission import issue_server_token
from contract.encryption import TlsFiles
from kma.ma_client import Endpoint, MaClient, Unanswered
from ma_site import env
from tests import environment
from tests.tls import Authority, Echo
from tests.web.real_site import PATIENCE, Site, real_site
from tests.web.rows import heartbeat

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def site(django_db_setup: None) -> Iterator[Site]:
    with real_site(tls=True, MA_ALLOWED_HOSTS="127.0.0.1,localhost,testserver") as running:
        yield running


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority.create(tmp_path_factory.mktemp("authorities") / "ours")


def ask(url: str, authority: Path | None, token: str = "ma_none") -> None:
    files = TlsFiles(str(authority or ""))
    MaClient(Endpoint(url, "srv-1", token, files)).heartbeat(heartbeat("srv-1", sent_at=timezone.now()))


def test_a_kma_reports_where_it_knows_the_authority(site: Site) -> None:
    assert site.authority is not None
    token = issue_server_token(Server.objects.create(name="srv-1"), now=timezone.now())
    ask(site.url(""), site.authority.certificate, token)
    assert Server.objects.get().last_seen_at is not None


@pytest.mark.parametrize("trusted", ["of another", "of the system"])
def test_it_does_not_where_the_authority_is_another(site: Site, authority: Authority, trusted: str) -> None:
    with pytest.raises(Unanswered, match=rf"{site.port}/api/v1 is of an unknown authority .*: name the file"):
        ask(site.url(""), authority.certificate if trusted == "of another" else None)


def test_nor_where_the_certificate_is_for_another_host(site: Site) -> None:
    assert site.authority is not None
    with pytest.raises(Unanswered, match=rf"localhost:{site.port}/api/v1 is for another host: use a name"):
        ask(f"https://localhost:{site.port}", site.authority.certificate)


def test_nor_where_it_has_expired(authority: Authority) -> None:
    with (
        Echo(*authority.sign("over", "IP:127.0.0.1", days=-1)) as over,
        pytest.raises(Unanswered, match=rf"{over.port}/api/v1 has expired: renew it there"),
    ):
        ask(f"https://127.0.0.1:{over.port}", authority.certificate)


def test_a_site_in_clear_behind_https_is_told(authority: Authority) -> None:
    with real_site() as clear, pytest.raises(Unanswered, match=rf"{clear.port}/api/v1 does not speak TLS"):
        ask(f"https://127.0.0.1:{clear.port}", authority.certificate)


def test_what_is_older_than_tls_1_2_is_refused(site: Site) -> None:
    old = ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"]
    for version, said in ((old, "alert protocol version"), (["-tls1_2"], "Protocol  : TLSv1.2")):
        done = subprocess.run(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{site.port}", *version],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert said in done.stdout + done.stderr


def test_a_browser_keeps_to_https_and_its_cookies_too(site: Site) -> None:
    answer = requests.get(site.url("/login/"), timeout=PATIENCE, verify=site.verify)
    assert answer.headers["Strict-Transport-Security"] == "max-age=31536000"
    assert [cookie.secure for cookie in answer.cookies] == [True]


def test_one_half_of_a_pair_starts_no_site(authority: Authority) -> None:
    certificate, key = map(str, authority.sign("half", "IP:127.0.0.1"))
    other = str(authority.sign("other", "IP:127.0.0.1")[1])
    for files, said in (
        ({"MA_TLS_CERT": certificate}, "MA_TLS_KEY is not set: certificate and key are a pair"),
        ({"MA_TLS_KEY": key}, "MA_TLS_CERT is not set: certificate and key are a pair"),
        ({"MA_TLS_CERT": certificate, "MA_TLS_KEY": other}, "the key does not belong to the certificate"),
        ({"MA_TLS_CERT": certificate, "MA_TLS_KEY": key}, "MA_BASE_URL: must begin with https://"),
    ):
        with pytest.raises(ImproperlyConfigured, match=said):
            env.read(environment.VALUES | files)
