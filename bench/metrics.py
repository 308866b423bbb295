"""Figures over time at 200 settings, each on every server, every minute busy: how large a year of them is,
and how long a picture waits for them.

Rows as the product keeps them in the long run (minutes of 48 hours, hours of 30 days, days of a year), in the
order in which time brings them, on PostgreSQL. `--share` makes as much of it, by settings, and reckons sizes
for the whole.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from bench import Bound, Delay, Line, percentile_95, site

# MB of all tables with their indexes, by the number of servers.
GOALS = {5: 2_000.0, 50: 12_000.0}
# Seconds, 95th percentile.
GOAL_OF_READING = 0.1
# Rows a second: what 200 settings on 50 servers report in a minute is 167 a second.
GOAL_OF_FOLDING = 1_000.0
ROUNDS = 60
RANGES = {"1 h": 1, "24 h": 24, "7 d": 7 * 24, "30 d": 30 * 24, "90 d": 90 * 24}


def run(arguments: Sequence[str]) -> list[Line]:
    options = _options(arguments)
    if options.only:
        site.set_up()
        print(json.dumps([site.packed(line) for line in _measured(options)]))
        sys.exit(0)
    return [line for servers in options.servers or GOALS for line in _in_a_process(servers, options)]


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench metrics")
    parser.add_argument("--servers", action="append", type=int, help="5 and 50 unless told otherwise")
    parser.add_argument("--settings", type=int, default=200)
    parser.add_argument("--share", type=float, default=1.0, help="of the settings whose rows are made")
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _in_a_process(servers: int, options: argparse.Namespace) -> list[Line]:
    with (
        TemporaryDirectory(prefix="bench-metrics-") as name,
        site.database("postgresql", Path(name)) as url,
    ):
        environment = {**os.environ, **site.environment(Path(name), url)}
        given = ["--servers", servers, "--settings", options.settings, "--share", options.share]
        command = [sys.executable, "-m", "bench", "metrics", "--only", *map(str, given)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return [site.unpacked(line) for line in json.loads(done.stdout.splitlines()[-1])]


def _measured(options: argparse.Namespace) -> Iterator[Line]:
    from django.utils import timezone

    from bench.metrics_pages import pages_with_charts
    from bench.metrics_rows import Scale, fill, size_of_all

    (servers,) = options.servers
    now = timezone.now()
    scale = Scale(options.settings, servers, options.share)
    fill(scale, now)
    print(f"{servers} servers: filled in {(timezone.now() - now).total_seconds():.0f} s", file=sys.stderr)
    sizes = size_of_all(scale)
    yield Bound(
        name=f"{options.settings} settings on {servers} servers, all tables",
        product=sum(sizes.values()),
        reference=0.0,
        goal=GOALS.get(servers, max(GOALS.values())),
        unit="MB",
        at_most=True,
        runs=[sizes],
    )
    print({name: round(size) for name, size in sizes.items()}, file=sys.stderr)
    yield from _readings(servers, now)
    yield from pages_with_charts(servers, now)
    yield from _writing(now)


def _readings(servers: int, now: datetime) -> Iterator[Line]:
    """Each round asks for another scope, as people do."""
    from metrics import queries
    from metrics.models import Scope

    keys = list(Scope.objects.order_by("pk").values_list("key", flat=True))
    kinds = {
        "installation": ["*"],
        "setting": [key for key in keys if key.startswith("s") and "h" not in key],
        "server": [key for key in keys if key.startswith("h")],
        "setting on a server": [
            key for key in keys if "sh" in key.translate({ord(c): "" for c in "0123456789"})
        ],
    }
    asked: dict[str, Callable[[int], object]] = {}
    for name, hours in RANGES.items():
        start = now - timedelta(hours=hours)
        for kind, own in kinds.items():
            asked[f"{kind}, {name}"] = lambda turn, start=start, own=own: queries.series(  # type: ignore[misc]
                own[turn * 7919 % len(own)], start, now, now
            )
    day, hour = now - timedelta(hours=24), now - timedelta(hours=1)
    every = kinds["setting"]
    asked[f"curves of {len(every)} settings, 24 h"] = lambda _: queries.series_of(every, day, now, now)
    asked[f"sums of {len(every)} settings, 1 h"] = lambda _: queries.totals(
        every, hour, now, now, histograms=False
    )
    asked[f"sums of {len(every)} settings, 24 h"] = lambda _: queries.totals(
        every, day, now, now, histograms=False
    )
    asked[f"sums with histograms of {len(every)} settings, 1 h"] = lambda _: queries.totals(
        every, hour, now, now
    )
    pairs = kinds["setting on a server"][:servers]
    asked[f"sums with histograms of a setting on {len(pairs)} servers, 24 h"] = lambda _: queries.totals(
        pairs, day, now, now
    )
    for name, ask in asked.items():
        took = [_seconds(ask, turn) for turn in range(ROUNDS)]
        yield Delay(
            name=f"{servers} servers · {name}",
            product=percentile_95(took),
            reference=sorted(took)[ROUNDS // 2],
            goal=GOAL_OF_READING,
        )


def _seconds(ask: Callable[[int], object], turn: int) -> float:
    began = time.perf_counter()
    ask(turn)
    return time.perf_counter() - began


def _writing(now: datetime) -> Iterator[Line]:
    """Records of a minute into the wider scopes; minutes of an hour that is over into the hour."""
    from django.db.models import F

    from metrics import rollup
    from metrics.models import Minute

    for name, step in (("folded", rollup.fold), ("packed", rollup.pack)):
        Minute.objects.update(folded=name == "packed", span=F("span") - 120)
        before, ends_at = Minute.objects.count(), time.monotonic() + 20
        left = _left(name)
        began = time.perf_counter()
        while step(now) and time.monotonic() < ends_at:
            pass
        took = time.perf_counter() - began
        done = left - _left(name)
        yield Bound(
            name=f"reported minutes {name}, of {before:,}",
            product=done / took,
            reference=0.0,
            goal=GOAL_OF_FOLDING,
            unit="/s",
        )


def _left(name: str) -> int:
    from metrics.models import Minute

    rows = Minute.objects.filter(folded=False) if name == "folded" else Minute.objects.all()
    return rows.count()
