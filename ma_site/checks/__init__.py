"""Describes what `./ma doctor` looks at: each check registers with its place in the order shown."""

from ma_site.checks import host, kmas, services, work
from ma_site.checks.finding import Finding, run_checks

__all__ = ["Finding", "host", "kmas", "run_checks", "services", "work"]
