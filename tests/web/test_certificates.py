"""When certificates end: seen of a broker, kept, told by doctor and by an alert."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from agents.models import ComponentCondition, ComponentState
from agents.site import certificates
from alerts.sources.components import CERTIFICATES
from broker.port import Account
from contract.encryption import TlsFiles, ends_of_file
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
    left = ends_of_file(str(authority.certificate)) - datetime.now(UTC)
    assert timedelta(days=1, hours=23) < left <= timedelta(days=2)
    with pytest.raises(ValueError, match="holds no certificate"):
        ends_of_file(str(authority.folder / "ca.key"))


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


def test_a_certificate_of_the_site_s_own_is_read_from_its_file(
    authority: Authority, settings: object
) -> None:
    certificate, key = map(str, authority.sign("client", subject="ma-ops"))
    settings.MA_TLS_CERT = certificate  # type: ignore[attr-defined]
    settings.MA_BROKER_AMQP = Account("amqp://127.0.0.1:1", "", "", TlsFiles("", certificate, key))  # type: ignore[attr-defined]
    assert dict(certificates.seen_now()).keys() == {certificate}


def test_without_tls_there_is_nothing_to_keep() -> None:
    certificates.look(timezone.now())
    assert not ComponentState.objects.filter(name=certificates.NAME).exists()
    assert list(check_certificates(timezone.now())) == []
