"""The parameters of MA_DATABASE_URL hold for Django's connection and for the JDBC driver of the pipeline."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from agents.site import certificates
from contract.encryption import end_of_chain
from deploy.config import LOOPBACK
from deploy.installing import artemis_download
from deploy.services import postgres as postgres_program
from ma_site import env
from ma_site.service_urls import parse_database
from tests import environment
from tests.tls import Authority

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[2]
ASK = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
# What the site's own connection is: in the process of manage.py, with the environment of an operator.
DJANGO = f"""
import os, sys
import django; django.setup()
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute({ASK!r})
    print("tls" if cursor.fetchone()[0] else "clear")
"""
JDBC = """
import java.sql.*;
public class Ask {
    public static void main(String[] given) throws Exception {
        try (Connection c = DriverManager.getConnection(given[0], given[1], given[2]);
             ResultSet r = c.createStatement().executeQuery("QUERY")) {
            r.next();
            System.out.println(r.getBoolean(1) ? "tls" : "clear");
        }
    }
}
""".replace("QUERY", ASK)


@dataclass
class Database:
    cluster: postgres_program.Cluster
    authority: Authority
    other: Authority
    folder: Path

    def url(self, parameters: str = "", host: str = LOOPBACK) -> str:
        return self.cluster.url().replace(LOOPBACK, host) + (f"?{parameters}" if parameters else "")

    def django(self, url: str) -> str:
        values = environment.values(self.folder) | {"MA_DATABASE_URL": url}
        values |= {
            "DJANGO_SETTINGS_MODULE": "ma_site.settings",
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.folder),
        }
        command = [sys.executable, "-c", DJANGO]
        done = subprocess.run(command, env=values, cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip() or done.stderr


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("tls")
    authority, other = Authority.create(folder / "house"), Authority.create(folder / "evil")
    certificate, key = authority.sign("server", f"IP:{LOOPBACK}")
    cluster = postgres_program.start()
    cluster.process.terminate()
    cluster.process.wait(20)
    data = cluster.folder / "data"
    for source, name in ((certificate, "server.crt"), (key, "server.key"), (authority.certificate, "ca.crt")):
        shutil.copy(source, data / name)
        owner = data.stat()
        (data / name).chmod(0o600)
        shutil.chown(data / name, owner.st_uid, owner.st_gid)
    rules = [f"{kind} all all {LOOPBACK}/32 scram-sha-256" for kind in ("hostssl", "hostnossl")]
    (data / "pg_hba.conf").write_text("\n".join(rules) + "\n")
    cluster.settings = {**postgres_program.SETTINGS, "ssl": "on", "ssl_ca_file": "ca.crt"}
    cluster.restart()
    yield Database(cluster, authority, other, folder)
    cluster.stop()


def test_the_right_authority_and_name_are_taken(database: Database) -> None:
    ca = database.authority.certificate
    assert database.django(database.url(f"sslmode=verify-full&sslrootcert={ca}")) == "tls"
    assert database.django(database.url("sslmode=disable")) == "clear"


def test_a_wrong_authority_and_a_wrong_name_are_refused(database: Database) -> None:
    wrong = database.django(database.url(f"sslmode=verify-full&sslrootcert={database.other.certificate}"))
    assert "certificate verify failed" in wrong, wrong
    ca = database.authority.certificate
    other_name = database.django(database.url(f"sslmode=verify-full&sslrootcert={ca}", host="localhost"))
    assert "does not match host name" in other_name, other_name


def test_the_end_of_the_server_s_certificate_is_seen(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    ca = str(database.authority.certificate)
    for mode, seen in (("verify-full", True), ("require", True), ("disable", False)):
        known = parse_database(database.url(f"sslmode={mode}" + (f"&sslrootcert={ca}" if seen else "")))
        with monkeypatch.context() as another:
            another.setitem(settings.DATABASES, "default", known)
            found = dict(certificates.seen_now())
        end = found.get(f"{LOOPBACK}:{known['PORT']}")
        assert end == (end_of_chain(str(database.authority.folder / "server.crt")) if seen else None)
        assert (ca in found) is seen


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ("sslmod=verify-full", "sslmod"),
        ("sslmode=verify", "sslmode"),
        ("sslmode=verify-full&sslrootcert=/none/such", "sslrootcert"),
        ("sslmode=prefer&sslrootcert=/etc/passwd", "sslmode"),
        ("sslmode=disable&sslmode=verify-full", "duplicate"),
        ("sslmode=require&sslcert=/etc/passwd", "sslkey"),
        ("options=-cfoo&host=elsewhere", "host, options"),
    ],
)
def test_what_is_not_understood_is_refused_and_named(parameters: str, named: str, tmp_path: Path) -> None:
    for base in ("postgresql://ma:pw@db.example/ma", "sqlite:////srv/db.sqlite3"):
        values = environment.values(tmp_path) | {"MA_DATABASE_URL": f"{base}?{parameters}"}
        with pytest.raises(ImproperlyConfigured) as refused:
            env.read(values)
        assert "MA_DATABASE_URL" in str(refused.value) and "pw@" not in str(refused.value)
        if base.startswith("postgresql"):
            assert named in str(refused.value)


@pytest.fixture(scope="module")
def ask_by_jdbc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("jdbc")
    artemis_download.ensure_fetched(folder / "log")
    (folder / "Ask.java").write_text(JDBC)
    return folder / "Ask.java"


def by_jdbc(source: Path, database: Database, url: str) -> str:
    from console.database.storage import jdbc_url

    known = env.read(environment.values(database.folder) | {"MA_DATABASE_URL": url}).database
    command = ["java", "-cp", str(artemis_download.DRIVERS[0].jar), str(source)]
    command += [jdbc_url(known), known["USER"], known["PASSWORD"]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or done.stderr


def test_the_pipeline_s_driver_is_told_the_same(database: Database, ask_by_jdbc: Path) -> None:
    ca, evil = database.authority.certificate, database.other.certificate
    assert by_jdbc(ask_by_jdbc, database, database.url(f"sslmode=verify-full&sslrootcert={ca}")) == "tls"
    assert by_jdbc(ask_by_jdbc, database, database.url("sslmode=disable")) == "clear"
    for refused in (
        database.url(f"sslmode=verify-full&sslrootcert={evil}"),
        database.url(f"sslmode=require&sslrootcert={evil}"),
        database.url(f"sslmode=verify-full&sslrootcert={ca}", host="localhost"),
    ):
        told = by_jdbc(ask_by_jdbc, database, refused)
        assert "PSQLException" in told, told


def test_a_client_s_key_in_pem_is_used_by_django_and_for_jdbc_in_der_beside_it(
    database: Database, ask_by_jdbc: Path
) -> None:
    from console.database.storage import KeyUnreadable

    certificate, key = database.authority.sign("client", subject=postgres_program.USER)
    hba = database.cluster.folder / "data" / "pg_hba.conf"
    before = hba.read_text()
    hba.write_text(f"hostssl all all {LOOPBACK}/32 scram-sha-256 clientcert=verify-full\n")
    with psycopg.connect(database.url(), sslcert=str(certificate), sslkey=str(key)) as connection:
        connection.execute("SELECT pg_reload_conf()")
    try:
        url = database.url(
            f"sslmode=verify-full&sslrootcert={database.authority.certificate}&sslcert={certificate}&sslkey={key}"
        )
        assert database.django(url) == "tls"
        with pytest.raises(KeyUnreadable) as refused:
            by_jdbc(ask_by_jdbc, database, url)
        der = refused.value.converted
        command = [
            "openssl",
            "pkcs8",
            "-topk8",
            "-nocrypt",
            "-outform",
            "DER",
            "-in",
            str(key),
            "-out",
            str(der),
        ]
        subprocess.run(command, check=True)
        assert by_jdbc(ask_by_jdbc, database, url) == "tls"
    finally:
        hba.write_text(before)
