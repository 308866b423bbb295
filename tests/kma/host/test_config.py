"""The environment of a KMA is read strictly, and what is wrong is said all at once."""

import socket
from pathlib import Path

import pytest

from contract.encryption import TlsFiles
from kma.host.config import ConfigError, default_data, read_config
from tests.tls import Authority

RIGHT = {
    "MA_URL": "https://ma.example:8000/",
    "KMA_SERVER": "srv-1",
    "KMA_TOKEN": "kma_secret",
    "KMA_AGENTS": "shop.orders, shop.invoices",
    "KMA_DATA": "/var/lib/kma",
    "KMA_AMQP_URL": "amqp://127.0.0.1:5672",
    "KMA_BROKER_USER": "kma",
    "KMA_BROKER_PASSWORD": "pass",
    "KMA_REDIS_URL": "redis://:pw@127.0.0.1:6379/0",
}


def test_a_right_environment_is_read_with_its_defaults() -> None:
    config = read_config(RIGHT)
    assert config.ma_url == "https://ma.example:8000"
    assert config.agents == ("shop.orders", "shop.invoices")
    assert (config.heartbeat_seconds, config.spool_bytes, config.log_level) == (2.0, 536870912, "INFO")


def test_secrets_never_show_in_a_repr() -> None:
    shown = repr(read_config(RIGHT))
    assert "kma_secret" not in shown and "pass" not in shown and ":pw@" not in shown


def test_metrics_are_off_on_loopback_without_a_token_and_elsewhere_with_one() -> None:
    assert read_config(RIGHT).metrics_address is None
    assert read_config({**RIGHT, "KMA_METRICS_ADDRESS": "127.0.0.1:9470"}).metrics_token == ""
    others = {"KMA_METRICS_ADDRESS": "0.0.0.0:9470", "KMA_METRICS_TOKEN": "a-token-of-some-length"}
    assert read_config({**RIGHT, **others}).metrics_token == "a-token-of-some-length"
    assert "a-token-of" not in repr(read_config({**RIGHT, **others}))


NEEDED = ("MA_URL", "KMA_TOKEN", "KMA_AMQP_URL", "KMA_BROKER_PASSWORD")


@pytest.mark.parametrize("name", NEEDED)
def test_nothing_needed_may_be_missing(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is not set"):
        read_config({**RIGHT, name: " "})


def test_three_variables_are_enough() -> None:
    config = read_config(
        {
            "MA_URL": "https://ma.example",
            "KMA_TOKEN": "kma_secret",
            "KMA_AMQP_URL": "amqps://shop:p%40ss@a.example,amqps://shop:p%40ss@b.example:7",
            "HOME": "/home/kma",
        }
    )
    assert config.account.url == "amqps://a.example,amqps://b.example:7"
    assert (config.account.user, config.account.password) == ("shop", "p@ss")
    assert (config.server, config.agents, config.redis_url) == (socket.gethostname(), (), "")
    assert config.data == Path("/home/kma/.local/state/kma")
    assert "p@ss" not in repr(config) and "p%40ss" not in repr(config)


def test_the_data_of_a_service_are_where_its_manager_made_room() -> None:
    named = {"HOME": "/home/kma", "XDG_STATE_HOME": "/home/kma/state"}
    assert default_data(named) == Path("/home/kma/state/kma")
    assert default_data({**named, "STATE_DIRECTORY": "/var/lib/kma/a:/x"}) == Path("/var/lib/kma/a")


def test_an_account_stands_in_one_place() -> None:
    for url in ("amqp://a:b@127.0.0.1:1", "amqp://a:b@127.0.0.1:1,amqp://c:d@127.0.0.1:2"):
        given = {**RIGHT, "KMA_AMQP_URL": url}
        if "," in url:
            del given["KMA_BROKER_USER"]
        with pytest.raises(ConfigError, match="holds another account"):
            read_config(given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MA_URL", "ma.example"),
        ("MA_URL", "http://[oops"),
        ("KMA_SERVER", "srv 1"),
        ("KMA_AGENTS", "shop.orders,3d"),
        ("KMA_AGENTS", ","),
        ("KMA_AMQP_URL", "tcp://127.0.0.1:61616"),
        ("KMA_AMQP_URL", "amqp://127.0.0.1:1,amqps://127.0.0.1:2"),
        ("KMA_AMQP_URL", "amqp://kma:pass@127.0.0.1:1"),
        ("KMA_ALLOW_UNENCRYPTED", "everything"),
        ("KMA_BROKER_TLS_CA", "ca.pem"),
        ("KMA_MA_TLS_CA", "/none/such"),
        ("KMA_REDIS_URL", "127.0.0.1"),
        ("KMA_HEARTBEAT_SECONDS", "0"),
        ("KMA_HEARTBEAT_SECONDS", "nan"),
        ("KMA_SPOOL_BYTES", "10 MB"),
        ("KMA_LOG_LEVEL", "loud"),
        ("KMA_CHILD_ENV", "SHOP_URL,KMA_TOKEN"),
        ("KMA_CHILD_ENV", "KMA_REDIS_URL_FILE"),
        ("KMA_CHILD_ENV", "SHOP-URL"),
        ("KMA_CHILD_ENV", "KMA_METRICS_TOKEN"),
        ("KMA_METRICS_ADDRESS", "9470"),
        ("KMA_METRICS_ADDRESS", "0.0.0.0:9470"),
        ("KMA_METRICS_TOKEN", "short"),
        ("KMA_TRACE_ENDPOINT", "collector:4318"),
    ],
)
def test_a_wrong_value_is_named(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        read_config({**RIGHT, name: value})


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("MA_URL", "http://ma.example:8000", "site"),
        ("KMA_AMQP_URL", "amqp://10.0.0.1:5672,amqp://127.0.0.1:5672", "broker"),
        ("KMA_REDIS_URL", "redis://:pw@redis.example:6379/0", "redis"),
    ],
)
def test_what_would_leave_this_machine_in_clear_needs_a_word_of_its_own(
    name: str, value: str, kind: str
) -> None:
    with pytest.raises(ConfigError, match=f"{name}: .* would not be encrypted.* list {kind} in KMA_ALLOW"):
        read_config({**RIGHT, name: value, "KMA_ALLOW_UNENCRYPTED": "database"})
    config = read_config({**RIGHT, name: value, "KMA_ALLOW_UNENCRYPTED": f"database, {kind}"})
    assert config.account.in_clear is (kind == "broker")


@pytest.mark.process
def test_a_certificate_takes_the_place_of_user_and_password(tmp_path: Path) -> None:
    certificate, key = map(str, Authority.create(tmp_path / "authority").sign("kma", subject="kma"))
    given = {**RIGHT, "KMA_AMQP_URL": "amqps://a.example,amqps://b.example:5673"}
    for name in ("KMA_BROKER_USER", "KMA_BROKER_PASSWORD"):
        del given[name]
    account = read_config({**given, "KMA_BROKER_TLS_CERT": certificate, "KMA_BROKER_TLS_KEY": key}).account
    assert (account.user, account.tls) == ("", TlsFiles("", certificate, key))

    with pytest.raises(ConfigError, match="KMA_BROKER_TLS_KEY is not set: certificate and key are a pair"):
        read_config({**given, "KMA_BROKER_TLS_CERT": certificate})
    with pytest.raises(ConfigError, match="KMA_BROKER_TLS_CERT needs amqps://"):
        read_config(
            {
                **given,
                "KMA_AMQP_URL": RIGHT["KMA_AMQP_URL"],
                "KMA_BROKER_TLS_CERT": certificate,
                "KMA_BROKER_TLS_KEY": key,
            }
        )


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read_config({})
    assert str(caught.value).count("is not set") == len(NEEDED)


def test_a_secret_may_come_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("kma_from_file\n")
    without = {name: value for name, value in RIGHT.items() if name != "KMA_TOKEN"}
    assert read_config({**without, "KMA_TOKEN_FILE": str(tmp_path / "token")}).token == "kma_from_file"
    with pytest.raises(ConfigError, match="keep one"):
        read_config({**RIGHT, "KMA_TOKEN_FILE": str(tmp_path / "token")})
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config({**without, "KMA_TOKEN_FILE": str(tmp_path / "none")})
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ConfigError, match="empty file"):
        read_config({**without, "KMA_TOKEN_FILE": str(tmp_path / "empty")})


def test_a_secret_is_never_shown_in_what_is_wrong_with_it() -> None:
    with pytest.raises(ConfigError) as caught:
        read_config({**RIGHT, "KMA_REDIS_URL": "http://:topsecret@host"})
    assert "topsecret" not in str(caught.value)


def test_a_server_that_offers_nothing_says_so_on_purpose() -> None:
    assert read_config({**RIGHT, "KMA_AGENTS": "none"}).agents == ()
