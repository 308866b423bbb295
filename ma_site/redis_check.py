"""Asks Redis whether it is there."""

import redis

TIMEOUT_SECONDS = 1.0


def ping(url: str) -> None:
    """Raises OSError when it does not answer, or not us."""
    client = redis.Redis.from_url(url, socket_connect_timeout=TIMEOUT_SECONDS, socket_timeout=TIMEOUT_SECONDS)
    try:
        client.ping()
    except redis.RedisError as error:
        raise OSError(f"{type(error).__name__}: {error}") from error
    finally:
        client.close()
