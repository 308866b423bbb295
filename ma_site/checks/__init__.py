"""What `./ma doctor` looks at: one file per part, each registers its check with its place in the order
shown."""

from ma_site.checks import (
    accounts,
    broker,
    clock,
    database,
    disk,
    kmas,
    migrations,
    pipeline,
    processes,
    proxies,
    redis,
    tokens,
    topology,
    undelivered,
    unreadable,
)
from ma_site.checks.finding import Finding, run_checks

__all__ = [
    "Finding",
    "accounts",
    "broker",
    "clock",
    "database",
    "disk",
    "kmas",
    "migrations",
    "pipeline",
    "processes",
    "proxies",
    "redis",
    "run_checks",
    "tokens",
    "topology",
    "undelivered",
    "unreadable",
]
