"""Asks Redis whether it is there."""

import redis

from contract import redis_url

TIMEOUT_SECONDS = 1.0


def ping(url: str) -> None:
    """Raises OSError when it does not answer, or not us."""
    address = redis_url.parse(url)
    client = redis.Redis.from_url(
        address.url, socket_connect_timeout=TIMEOUT_SECONDS, socket_timeout=TIMEOUT_SECONDS, **address.tls
    )
    try:
        client.ping()
    except redis.RedisError as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
    finally:
        client.close()
