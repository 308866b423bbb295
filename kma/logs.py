"""Logs: JSON lines on standard error, bound with activation, server and message key. No bodies, no
secrets."""

import logging
import sys
from typing import Any

import structlog

_SHARED: list[Any] = [
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    structlog.processors.format_exc_info,
]
_LEVELS = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}


def configure(level: str) -> None:
    """Sets structlog up, and the standard library's loggers (Celery's among them) to write the same lines."""
    structlog.configure(
        processors=[*_SHARED, structlog.processors.JSONRenderer(ensure_ascii=False, default=str)],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, structlog.stdlib.add_logger_name],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(_LEVELS[level])


def logger(**bound: Any) -> Any:
    return structlog.get_logger(**bound)


def agent_logger(level: str, **bound: Any) -> Any:
    """The logger of one handling; in a child process the first one sets structlog up."""
    if not structlog.is_configured():
        configure(level)
    return structlog.get_logger(**bound)
