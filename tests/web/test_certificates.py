"""When certificates end: seen of a broker, kept, told by doctor and by an alert."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django import conf
from django.utils import timezone

from agents.models import ComponentCondition, ComponentState
from agents.site import certificates
from alerts.sources.components import CERTIFICATES
from broker.port import Account
from contract.encryption import TlsFiles, end_of_authorities, end_of_chain
from ma_site.checks.services import check_certificates
from tests.tls import Authority, Echo

pytestmark = [pytest.mark.process, pytest.mark.django_db]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.create(tmp_path / "authority")


@pytest.fixture
def broker(authority: Authority, settings: object) -> Iterator[Echo]:
    """Whoever shows a certificate of two days."""
    with Echo(*authority.sign("broker", "IP:127.0.0.1")) as echo:
        url = f"amqps://127.0.0.1:{echo.port}"
        settings.MA_BROKER_AMQP = Account(url, "ma-ops", "x")  # type: ignore[attr-defined]
        yield echo


def test_the_end_is_read_from_the_file_that_openssl_wrote(authority: Authority) -> None:
    left = end_of_chain(str(authority.certificate)) - datetime.now(UTC)
    assert timedelta(days=1, hours=23) < left <= timedelta(days=2)
    with pytest.raises(ValueError, match="holds no certificate"):
        end_of_chain(str(authority.folder / "ca.key"))


def test_a_chain_ends_with_its_first_and_authorities_with_their_last(authority: Authority) -> None:
    short, long = authority.sign("short", days=5)[0], authority.sign("long", days=50)[0]
    both = authority.folder / "both.pem"
    both.write_bytes(long.read_bytes() + short.read_bytes())
    assert end_of_chain(str(both)) == end_of_chain(str(short))
    assert end_of_authorities(str(both)) == end_of_chain(str(long))


def test_what_ends_soon_is_kept_and_told_and_what_cannot_be_asked_stays(broker: Echo) -> None:
    now, what = timezone.now(), f"127.0.0.1:{broker.port}"
    certificates.look(now)
    row = ComponentState.objects.get(name=certificates.NAME)
    assert row.state == ComponentCondition.DOWN and list(certificates.ends()) == [what]

    (seen,) = CERTIFICATES.observe(now, frozenset())
    assert seen.value is not None and 29.0 <= seen.value <= 29.1
    assert f"The certificate {what} expires on" in CERTIFICATES.says(seen.facts, seen.value)
    (finding,) = check_certificates(now)
    assert not finding.ok and f"{what}: the certificate expires on" in finding.detail

    broker.stop()
    certificates.look(now + timedelta(hours=1))
    assert list(certificates.ends()) == [what]
    (over,) = CERTIFICATES.observe(now + timedelta(days=3), frozenset())
    assert f"The certificate {what} expired on" in CERTIFICATES.says(over.facts, over.value or 0.0)


def test_it_is_looked_at_every_ten_minutes(broker: Echo) -> None:
    now = timezone.now()
    certificates.look(now)
    certificates.look(now + timedelta(minutes=9))
    assert ComponentState.objects.get(name=certificates.NAME).measured_at == now
    certificates.look(now + timedelta(minutes=11))
    assert ComponentState.objects.get(name=certificates.NAME).measured_at > now


def test_own_certificates_and_authorities_are_read_from_their_files(
    authority: Authority, settings: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of site, broker, Redis and database."""
    names = ("site", "broker", "redis", "database")
    own = {name: tuple(map(str, authority.sign(name, days=9))) for name in names}
    believed = [str(Authority.create(authority.folder / name).certificate) for name in names[1:]]
    settings.MA_TLS_CERT = own["site"][0]  # type: ignore[attr-defined]
    files = TlsFiles(believed[0], *own["broker"])
    settings.MA_BROKER_AMQP = Account("amqp://127.0.0.1:1", "", "", files)  # type: ignore[attr-defined]
    certificate, key = own["redis"]
    settings.MA_REDIS_URL = (  # type: ignore[attr-defined]
        f"rediss://:x@127.0.0.1:1/0?ssl_ca_certs={believed[1]}&ssl_certfile={certificate}&ssl_keyfile={key}"
    )
    known = conf.settings.DATABASES["default"]
    options = {"sslrootcert": believed[2], "sslcert": own["database"][0]}
    with monkeypatch.context() as another:
        another.setitem(conf.settings.DATABASES, "default", {**known, "OPTIONS": options})
        seen = dict(certificates.seen_now())
    assert seen.keys() == {*believed, *(certificate for certificate, _key in own.values())}


def test_without_tls_there_is_nothing_to_keep() -> None:
    certificates.look(timezone.now())
    assert not ComponentState.objects.filter(name=certificates.NAME).exists()
    assert list(check_certificates(timezone.now())) == []
