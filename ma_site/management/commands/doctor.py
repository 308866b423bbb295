"""manage.py doctor: what is right, what is wrong, and what to do about it."""

import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from ma_site.checks import Finding, run_checks


class Command(BaseCommand):
    help = "Checks database, Redis, broker, topology, processes, clocks, tokens and KMAs. Exit code 0 or 1."
    # It must run where the database is what is wrong.
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = list(run_checks(timezone.now()))
        ok = all(finding.ok for finding in findings)
        if options["json"]:
            self.stdout.write(
                json.dumps({"ok": ok, "findings": [asdict(finding) for finding in findings]}, indent=2)
            )
        else:
            for finding in findings:
                self.stdout.write(line_of(finding))
        sys.exit(0 if ok else 1)


def line_of(finding: Finding) -> str:
    if finding.ok:
        return f"ok     {finding.check}: {finding.detail}"
    return f"WRONG  {finding.check}: {finding.detail}\n       → {finding.what_to_do}"
