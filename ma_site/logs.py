"""JSON logging: one line per event with what it speaks of; never a body, a property or a secret."""

import logging
from typing import Any

import structlog

FORBIDDEN = frozenset({"body", "encoded", "properties", "password", "token", "secret", "authorization"})


def drop_forbidden(logger: Any, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Leaves payloads and secrets out, should a call pass one by mistake."""
    for name in FORBIDDEN.intersection(event):
        event[name] = "left out"
    return event


SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    drop_forbidden,
]


def formatter() -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=SHARED,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
        ],
    )


def configure() -> None:
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *SHARED,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


class NoTracebackOfRefusals(logging.Filter):
    """A request that was refused (403, 400, 404) is a line; a traceback is for what went wrong in the MA."""

    def filter(self, record: logging.LogRecord) -> bool:
        if getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        return True


def logging_settings(level: str) -> dict[str, Any]:
    """Django's LOGGING: everything to stderr, which the process runner writes to the log of the process."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": "ma_site.logs.formatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "filters": {"refusals": {"()": "ma_site.logs.NoTracebackOfRefusals"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            "django.request": {"filters": ["refusals"]},
            "django.server": {"handlers": [], "level": level, "propagate": True},
            # stomp.py and Proton log frames, and with them properties, at their lower levels.
            "stomp.py": {"level": "ERROR"},
            "proton": {"level": "WARNING"},
            "amqp": {"level": "WARNING"},
            # A task every 5 s, told three times each.
            "celery.beat": {"level": "WARNING"},
            "celery.worker.strategy": {"level": "WARNING"},
            "celery.app.trace": {"level": "WARNING"},
            "kombu": {"level": "WARNING"},
        },
    }
