"""The services that all other tests stand on are real, and come back after a crash."""

import psycopg
import pytest

from deploy.services import artemis as artemis_program
from deploy.services import postgres as postgres_program
from deploy.services import redis as redis_program
from tests.services import ArtemisService, RedisService

pytestmark = pytest.mark.process


@pytest.mark.kill
def test_the_broker_answers_and_comes_back_after_a_kill(artemis: ArtemisService) -> None:
    assert artemis_program.artemis_answers(artemis.ports.amqp)
    artemis.kill()
    assert not artemis_program.artemis_answers(artemis.ports.amqp)
    artemis.start()
    assert artemis_program.artemis_answers(artemis.ports.amqp)


def test_redis_answers_only_to_its_password(redis_server: RedisService) -> None:
    assert redis_program.redis_answers(redis_server.url)
    assert not redis_program.redis_answers(redis_server.url.replace("redis://:", "redis://:wrong-"))


def test_postgres_is_a_server_that_runs_queries_as_an_ordinary_user(
    postgres: postgres_program.Cluster,
) -> None:
    with psycopg.connect(postgres.url()) as connection:
        row = connection.execute("select current_user, version()").fetchone()
    assert row is not None
    assert row[0] == "ma" and row[1].startswith("PostgreSQL")


@pytest.mark.kill
def test_a_durable_postgres_keeps_what_it_confirmed_through_a_kill() -> None:
    cluster = postgres_program.start(postgres_program.DURABLE)
    try:
        with psycopg.connect(cluster.url(), autocommit=True) as connection:
            connection.execute("create table kept as select generate_series(1, 1000) as n")
            cluster.kill()
        cluster.restart()
        with psycopg.connect(cluster.url()) as connection:
            assert connection.execute("select count(*) from kept").fetchone() == (1000,)
    finally:
        cluster.stop()
