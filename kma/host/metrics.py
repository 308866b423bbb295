"""/metrics of a KMA: what it tells the MA with its heartbeat, for who asks it directly.

Counters begin at 0 with this process: runs go on with totals from before it began, which an earlier process
has shown already. What that one had begun and never told has failed: here that is counted. The host's thread
tells what there is (`note`), threads of runs how long it took (`measured`), threads of the listener read it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from threading import Lock

from prometheus_client import ProcessCollector
from prometheus_client.core import Metric

from contract import __version__
from contract.histogram import bound, middle
from contract.messages import RunReport, SpoolReport
from contract.records import RunState
from exposition.declared import Distribution, Samples, counter, gauge, histogram, text
from exposition.listener import Address, Listener
from kma.logs import logger
from kma.run.minutes import Durations
from kma.run.thread import Children
from kma.spool.journal import Totals
from kma.spool.ledger import run_key

# Settings that a scrape shows at most; the rest is counted in `kma_label_values_left_out`.
MOST_SETTINGS = 1000
# Runs whose totals are remembered: an ended one is told for a minute more.
MOST_RUNS = 10_000
# 1 ms to 19 h, each four times the one before. Durations are exact there: these bounds are those of some
# buckets of contract/histogram.py.
_EDGES = tuple(range(0, 105, 8))
BOUNDS = tuple(map(bound, _EDGES))

OF_KMA = (
    gauge("kma_build_info", "Always 1; the version of the KMA, and its server.", "version", "server"),
    gauge("kma_told_age_seconds", "Age of what this answer says."),
    gauge("kma_label_values_left_out", "Label values above the limit, which no series shows.", "label"),
    gauge("kma_ma_up", "1 if the MA answered the last heartbeat."),
    gauge("kma_ma_answered_age_seconds", "Time since the MA answered a heartbeat."),
    gauge("kma_problems", "Problems of the KMA itself, by their code.", "code"),
    gauge("kma_runs", "Instances on this server.", "state"),
    counter(
        "kma_handlings_total", "Processed messages by result, since the KMA started.", "setting", "result"
    ),
    counter("kma_repeats_total", "Repeats accepted without processing, since the KMA started.", "setting"),
    counter("kma_child_restarts_total", "Agent processes started again, since the KMA started.", "setting"),
    histogram("kma_processing_seconds", "Time of processing, since the KMA started.", BOUNDS, "setting"),
    histogram(
        "kma_critical_seconds",
        "From sending a message until it was processed, since the KMA started.",
        BOUNDS,
        "setting",
    ),
    gauge("kma_in_progress", "Messages that the instance holds.", "setting"),
    gauge("kma_children", "Agent processes that are ready.", "setting"),
    gauge("kma_children_bytes", "Memory that agent processes hold.", "setting"),
    gauge("kma_connected", "1 if the instance has a link to the broker.", "setting"),
    gauge("kma_consecutive_failures", "Failures since the last success, as the breaker counts.", "setting"),
    gauge("kma_blocked", "1 if a failed message blocks the ordered subscription.", "setting"),
    gauge("kma_spool_records", "Records that the MA has not taken yet."),
    gauge("kma_spool_bytes", "Bytes of the spool."),
    gauge("kma_spool_limit_bytes", "Limit of the spool."),
    gauge("kma_spool_full", "1 if no messages are taken because the spool is full."),
    gauge("kma_spool_oldest_age_seconds", "Age of the oldest record that the MA has not taken yet."),
)

# What a run counts, by the result of a handling.
RESULTS = {"handled": "succeeded", "failed": "failed", "temporary": "temporary"}
COUNTS = (*RESULTS, "repeats", "restarts")


@dataclass(frozen=True, slots=True)
class Told:
    """What the host knows at an instant. `children`: of each run that is alive, by its key."""

    at: datetime
    runs: Sequence[RunReport]
    children: Mapping[str, Children]
    spool: SpoolReport
    problems: Sequence[str]
    ma_answers: bool
    answered_at: datetime | None


def distribution(numbers: Sequence[int], total: float) -> Distribution:
    """Numbers by the bucket of contract/histogram.py, in the few buckets of a scrape."""
    ends = [edge + 1 for edge in _EDGES]
    within = tuple(sum(numbers[start:end]) for start, end in pairwise((0, *ends)))
    return Distribution(within, sum(numbers[ends[-1] :]), total)


class HostMetrics:
    """`before`: the totals of all runs on the disk when this process began, by their key. `died`: attempts
    that an earlier process had begun and not ended, by their setting."""

    def __init__(self, server: str, before: Mapping[str, Totals], died: Mapping[str, int]) -> None:
        self._server = server
        self._seen: dict[str, Mapping[str, int]] = {
            key: {name: int(getattr(totals, name)) for name in (*RESULTS, "restarts")}
            for key, totals in before.items()
        }
        self._counts = {(setting, "failed"): number for setting, number in died.items()}
        self._durations: dict[tuple[str, str], Distribution] = {}
        self._told: Told | None = None
        self._lock = Lock()

    def note(self, told: Told) -> None:
        """Called more often than an ended run is reported."""
        with self._lock:
            for run in told.runs:
                self._count(run)
            while len(self._seen) > MOST_RUNS:
                del self._seen[next(iter(self._seen))]
            self._told = told

    def measured(self, durations: Durations) -> None:
        """By the thread of a run."""
        known = sum(middle(bucket) * number for bucket, number in enumerate(durations.critical) if number)
        more = {
            "kma_processing_seconds": distribution(durations.processing, durations.busy),
            "kma_critical_seconds": distribution(durations.critical, known),
        }
        with self._lock:
            for name, found in more.items():
                key = durations.setting, name
                self._durations[key] = self._durations[key] + found if key in self._durations else found

    def _count(self, run: RunReport) -> None:
        key = run_key(run.activation, run.epoch)
        now = {name: int(getattr(run, name)) for name in COUNTS}
        # Last seen, last forgotten. What the disk does not say of a run counts from now on.
        before = self._seen.pop(key, dict.fromkeys(COUNTS, 0))
        before = {name: before.get(name, number) for name, number in now.items()}
        for name, number in now.items():
            # Totals of a run that is started anew come from the disk, which may know less for a moment.
            grown = max(0, number - before[name])
            self._counts[run.setting, name] = self._counts.get((run.setting, name), 0) + grown
        self._seen[key] = {name: max(number, before[name]) for name, number in now.items()}

    def text(self, now: datetime, more: Iterable[Metric] = ()) -> bytes:
        samples = Samples(OF_KMA)
        samples.add("kma_build_info", 1, __version__, self._server)
        with self._lock:
            if self._told is not None:
                self._host(samples, self._told)
                self._settings(samples, self._told)
        return text(OF_KMA, samples.found, now, more)

    def _host(self, samples: Samples, told: Told) -> None:
        samples.add("kma_told_age_seconds", told.at)
        samples.add("kma_ma_up", told.ma_answers)
        if told.answered_at is not None:
            samples.add("kma_ma_answered_age_seconds", told.answered_at)
        for code in sorted(set(told.problems)):
            samples.add("kma_problems", told.problems.count(code), code)
        for state in RunState:
            samples.add("kma_runs", sum(run.state is state for run in told.runs), state.value)
        spool = told.spool
        samples.add("kma_spool_records", spool.rows)
        samples.add("kma_spool_bytes", spool.bytes)
        samples.add("kma_spool_limit_bytes", spool.limit_bytes)
        samples.add("kma_spool_full", spool.full)
        samples.add("kma_spool_oldest_age_seconds", spool.oldest_at or 0)

    def _settings(self, samples: Samples, told: Told) -> None:
        settings = sorted({setting for setting, _name in self._counts})
        samples.add("kma_label_values_left_out", max(0, len(settings) - MOST_SETTINGS), "setting")
        shown = set(settings[:MOST_SETTINGS])
        for (setting, name), number in self._counts.items():
            if setting not in shown:
                continue
            if name in RESULTS:
                samples.add("kma_handlings_total", number, setting, RESULTS[name])
            else:
                metric = "kma_repeats_total" if name == "repeats" else "kma_child_restarts_total"
                samples.add(metric, number, setting)
        for (setting, name), found in self._durations.items():
            if setting in shown:
                samples.add(name, found, setting)
        # Of a setting that has a new run while the old one ends both are here.
        of_setting: dict[str, list[RunReport]] = {}
        for run in told.runs:
            if run.setting in shown:
                of_setting.setdefault(run.setting, []).append(run)
        for setting, runs in of_setting.items():
            samples.add("kma_in_progress", sum(run.in_progress for run in runs), setting)
            children = [told.children.get(run_key(run.activation, run.epoch), Children()) for run in runs]
            samples.add("kma_children", sum(each.ready for each in children), setting)
            samples.add("kma_children_bytes", sum(each.bytes for each in children), setting)
            samples.add("kma_connected", any(run.connected for run in runs), setting)
            samples.add("kma_consecutive_failures", max(run.counts.any for run in runs), setting)
            samples.add("kma_blocked", any(run.blocked is not None for run in runs), setting)


def listen(
    address: Address, token: str, metrics: HostMetrics, now: Callable[[], datetime]
) -> Listener | None:
    """An address that is taken is logged: no message waits for a metric."""
    of_process = ProcessCollector(registry=None)
    log = logger()
    try:
        listener = Listener(address, token, lambda: metrics.text(now(), of_process.collect()))
    except OSError as error:
        log.error("metrics cannot be served", host=address.host, port=address.port, reason=str(error))
        return None
    listener.start()
    log.info("metrics are served", host=address.host, port=listener.port)
    return listener
