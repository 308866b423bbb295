from pathlib import Path

import pytest

from deploy import config as configuration
from deploy.config import REPOSITORY
from deploy.console import DeployError


def test_an_empty_environment_gives_the_documented_defaults() -> None:
    config = configuration.read({})
    assert (config.host, config.port, config.servers) == ("127.0.0.1", 8000, ("srv-1", "srv-2"))
    assert (config.amqp_port, config.stomp_port, config.core_port, config.redis_port) == (
        5672,
        61613,
        61616,
        6379,
    )
    assert config.data == REPOSITORY / "var"


def test_an_empty_variable_counts_as_not_set() -> None:
    assert configuration.read({"MA_PORT": "", "MA_SERVERS": "", "MA_DATA": ""}) == configuration.read({})


def test_every_port_comes_from_the_environment() -> None:
    names = ("MA_PORT", "MA_AMQP_PORT", "MA_STOMP_PORT", "MA_CORE_PORT", "MA_REDIS_PORT")
    config = configuration.read({name: str(21000 + index) for index, name in enumerate(names)})
    assert [config.port, config.amqp_port, config.stomp_port, config.core_port, config.redis_port] == [
        21000, 21001, 21002, 21003, 21004,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["0", "65536", "-1", "80a", " 80", "٣", "1e3"])
def test_what_is_not_a_port_is_refused_with_the_variable_s_name(text: str) -> None:
    with pytest.raises(DeployError, match="MA_AMQP_PORT"):
        configuration.read({"MA_AMQP_PORT": text})


def test_two_services_on_one_port_are_refused_with_both_names() -> None:
    with pytest.raises(DeployError, match="MA_PORT and MA_REDIS_PORT are both 7000"):
        configuration.read({"MA_PORT": "7000", "MA_REDIS_PORT": "7000"})


@pytest.mark.parametrize("text", ["a,a", ",", "Srv", "a b", "-a", "a" * 62, "a/../b", "a;rm"])
def test_what_is_not_a_list_of_server_names_is_refused(text: str) -> None:
    with pytest.raises(DeployError, match="MA_SERVERS"):
        configuration.read({"MA_SERVERS": text})


def test_spaces_around_server_names_are_ignored() -> None:
    assert configuration.read({"MA_SERVERS": " a , b-2 "}).servers == ("a", "b-2")


@pytest.mark.parametrize("text", ["::1", "a b", "http://x"])
def test_what_is_not_a_host_is_refused(text: str) -> None:
    with pytest.raises(DeployError, match="MA_HOST"):
        configuration.read({"MA_HOST": text})


def test_a_relative_data_folder_becomes_absolute() -> None:
    assert configuration.read({"MA_DATA": "here"}).data == Path.cwd() / "here"


def test_a_site_that_listens_everywhere_is_reached_on_loopback() -> None:
    config = configuration.read({"MA_HOST": "0.0.0.0", "MA_PORT": "81"})
    assert config.local_url == "http://127.0.0.1:81"


def test_a_base_url_of_one_s_own_is_the_address_that_is_shown() -> None:
    config = configuration.read({"MA_BASE_URL": "https://ma.example.org"})
    assert config.address == "https://ma.example.org/"
    assert config.local_url == "http://127.0.0.1:8000"


def test_only_named_settings_are_handed_on() -> None:
    config = configuration.read({"MA_LOG_LEVEL": "DEBUG", "MA_SECRET_KEY": "s", "HOME": "/root"})
    assert config.handed_on == {"MA_LOG_LEVEL": "DEBUG"}
