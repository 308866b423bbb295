from pathlib import Path

import pytest

from deploy import config as configuration
from deploy import environment
from deploy.console import DeployError
from deploy.environment import Process
from deploy.layout import Layout
from deploy.processes import order

DATA = Path("/srv/ma data")


def of(process: Process, **environ: str) -> dict[str, str]:
    config = configuration.read({"MA_DATA": str(DATA), "MA_AMQP_PORT": "21000"} | environ)
    return environment.of_process(process, config, Layout(config.data))


def test_secrets_are_named_by_file() -> None:
    for process in (Process("web", ""), Process("kma-a", "", "a"), Process("demo", "")):
        settings = of(process)
        assert not set(settings) & set(environment.SECRET_NAMES)
        assert all(settings[name].startswith(str(DATA)) for name in settings if name.endswith("_FILE"))


def test_the_site_works_with_the_operations_account_and_a_kma_with_its_own() -> None:
    assert of(Process("web", ""))["MA_BROKER_PASSWORD_FILE"].endswith("/broker_ops")
    assert of(Process("kma-a", "", "a"))["KMA_BROKER_PASSWORD_FILE"].endswith("/broker_kma")


def test_only_the_demo_knows_the_publisher_s_account() -> None:
    assert "MA_PUBLISHER_USER" in of(Process("demo", ""))
    assert "MA_PUBLISHER_USER" not in of(Process("web", ""))


def test_broker_and_redis_are_told_only_where_their_data_is() -> None:
    assert of(Process("artemis", "")) == of(Process("redis", "")) == {"MA_DATA": str(DATA)}


def test_the_database_is_a_url_whatever_the_folder_is_called() -> None:
    assert of(Process("web", ""))["MA_DATABASE_URL"] == "sqlite:///srv/ma%20data/db.sqlite3"


def test_settings_of_one_s_own_win() -> None:
    own = {"MA_DATABASE_URL": "postgresql://u:p@h:5/n", "KMA_AGENTS": "my.agents"}
    assert "/secrets/database_url_" in of(Process("web", ""), **own)["MA_DATABASE_URL_FILE"]
    kma = of(Process("kma-a", "", "a"), **own)
    assert kma["KMA_AGENTS"] == "my.agents"
    assert "MA_DATABASE_URL" not in kma


def test_the_site_answers_to_the_names_of_this_machine() -> None:
    assert {"127.0.0.1", "localhost"} < set(of(Process("web", ""))["MA_ALLOWED_HOSTS"].split(","))
    assert "ma.example.org" in of(Process("web", ""), MA_HOST="ma.example.org")["MA_ALLOWED_HOSTS"].split(",")


def test_sample_agents_are_offered_only_while_the_demo_runs() -> None:
    kma = of(Process("kma-a", "", "a"))
    assert "kma.samples" not in kma["KMA_AGENTS"], (
        "without the demo a right in a pool would be code on this host"
    )
    assert kma["KMA_AGENTS"] == "none"


def test_with_the_demo_its_agents_are_offered_and_those_of_the_benchmarks_are_not() -> None:
    config = configuration.read({"MA_DATA": str(DATA)})
    kma = environment.of_process(Process("kma-a", "", "a"), config, Layout(config.data), demo=True)
    assert "kma.samples.scripted" in kma["KMA_AGENTS"] and "bench" not in kma["KMA_AGENTS"]


def test_the_start_says_what_the_servers_offer() -> None:
    def said(*, demo: bool, **environ: str) -> str:
        return order.offered_agents(configuration.read({"MA_DATA": str(DATA)} | environ), demo=demo)

    assert "srv-1, srv-2: none." in said(demo=False) and "KMA_AGENTS" in said(demo=False)
    assert "demo samples" in said(demo=True) and "--no-demo" in said(demo=True)
    assert "shop_agents" in said(demo=False, KMA_AGENTS="shop_agents")


def test_a_database_that_is_named_by_a_file_is_handed_on_without_a_default_beside_it() -> None:
    for kind in ("web", "worker", "beat", "feed", "demo"):
        site = of(Process(kind, ""), MA_DATABASE_URL_FILE="/etc/ma/database")
        assert site.get("MA_DATABASE_URL_FILE") == "/etc/ma/database"
        assert "MA_DATABASE_URL" not in site, "the site refuses both"
    assert not {"MA_DATABASE_URL", "MA_DATABASE_URL_FILE"} & set(
        of(Process("kma-a", "", "a"), MA_DATABASE_URL_FILE="/f")
    )


def test_the_kmas_of_this_machine_are_scraped_side_by_side_with_the_token_of_the_site() -> None:
    asked = {"KMA_METRICS_ADDRESS": "127.0.0.1:9470", "MA_SERVERS": "a,b"}
    first, second = (of(Process(f"kma-{name}", "", name), **asked) for name in ("a", "b"))
    assert (first["KMA_METRICS_ADDRESS"], second["KMA_METRICS_ADDRESS"]) == (
        "127.0.0.1:9470",
        "127.0.0.1:9471",
    )
    assert first["KMA_METRICS_TOKEN_FILE"] == of(Process("web", ""))["MA_METRICS_TOKEN_FILE"]
    assert "KMA_METRICS_TOKEN_FILE" not in of(Process("kma-a", "", "a"))
    unlisted = of(Process("kma-c", "", "c"), **asked)
    assert not {"KMA_METRICS_ADDRESS", "KMA_METRICS_TOKEN_FILE"} & set(unlisted), "it has no port"


@pytest.mark.parametrize("address", ["9470", ":9470", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65535"])
def test_an_address_without_a_port_for_each_server_is_refused(address: str) -> None:
    with pytest.raises(DeployError, match="KMA_METRICS_ADDRESS"):
        of(Process("kma-a", "", "a"), KMA_METRICS_ADDRESS=address, MA_SERVERS="a,b")


def test_a_token_of_one_s_own_is_kept_in_a_file_too() -> None:
    settings = of(Process("web", ""), MA_METRICS_TOKEN="a-token-of-some-length")
    assert "/secrets/shell_metrics_token_" in settings["MA_METRICS_TOKEN_FILE"]
    named = of(Process("web", ""), MA_METRICS_TOKEN_FILE="/srv/token")
    assert named["MA_METRICS_TOKEN_FILE"] == "/srv/token" and "MA_METRICS_TOKEN" not in named
