"""The address of Redis: in clear, or verified; nothing of it that holds a password is quoted."""

import re
import ssl
from pathlib import Path

import pytest

from contract.redis_url import FILES, RedisAddress, check_file, parse

SECRET = "s3cret"


@pytest.fixture
def ca(tmp_path: Path) -> str:
    file = tmp_path / "ca.pem"
    file.write_text("pem")
    return str(file)


@pytest.mark.parametrize(
    "url",
    ["redis://:s3cret@host:6379/0", "redis://host", "redis://[::1]:6380/3", "unix:///run/redis.sock?db=1"],
)
def test_an_address_in_clear_has_no_tls(url: str) -> None:
    assert parse(url) == RedisAddress(url, {})


def test_what_follows_the_path_is_left_out() -> None:
    assert parse("redis://host/0#part").url == "redis://host/0"


def test_rediss_always_verifies(ca: str) -> None:
    always = {"ssl_cert_reqs": ssl.CERT_REQUIRED, "ssl_check_hostname": True}
    assert parse("rediss://:s3cret@host:6380/0") == RedisAddress("rediss://:s3cret@host:6380/0", always)
    with_files = parse(f"rediss://:s3cret@host:6380/0?ssl_ca_certs={ca}&ssl_certfile={ca}&ssl_keyfile={ca}")
    assert with_files.url == "rediss://:s3cret@host:6380/0"
    assert with_files.tls == always | dict.fromkeys(FILES, ca)
    assert parse(f"rediss://host?ssl_certfile={ca}").tls == always | {"ssl_certfile": ca}


NO_URL = "is not a redis, rediss or unix URL: redis://:password@host:port/0"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://:s3cret@host", NO_URL),
        ("redis://:s3cret@", NO_URL),
        ("rediss:///0", NO_URL),
        ("redis://:s3cret@host:0/0", NO_URL),
        ("redis://:s3cret@host:x", "is not a redis, rediss or unix URL"),
        ("redis://:s3cret@[::1", "is not a redis, rediss or unix URL"),
        ("redis://:s3cret@host?b=&a=s3cret&b=1", "takes no parameters (a, b): for TLS use rediss://"),
        (
            "rediss://:s3cret@host?ssl_cert_reqs=none&ssl_ca_certs=/x",
            "has unknown parameters: ssl_cert_reqs; known: ssl_ca_certs, ssl_certfile, ssl_keyfile",
        ),
        ("rediss://:s3cret@host?ssl_ca_certs=/dev/null&ssl_ca_certs=/dev/null", "has a duplicate parameter"),
        ("rediss://:s3cret@host?ssl_ca_certs=", "ssl_ca_certs must be an absolute path"),
        ("rediss://:s3cret@host?ssl_keyfile=/dev/null", "has ssl_keyfile without ssl_certfile"),
        (
            "rediss://:s3cret@host?ssl_certfile=/not/there",
            "ssl_certfile cannot be read: No such file or directory",
        ),
    ],
)
def test_a_wrong_address_is_refused_without_its_password(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(why)}$") as refused:
        parse(url)
    assert SECRET not in str(refused.value) and refused.value.__cause__ is None


def test_a_file_is_named_from_the_root() -> None:
    check_file("ssl_ca_certs", "/dev/null")
    with pytest.raises(ValueError, match="^ssl_ca_certs must be an absolute path$"):
        check_file("ssl_ca_certs", "dev/null")


def test_an_address_does_not_show_its_url() -> None:
    assert SECRET not in repr(parse("redis://:s3cret@host"))
