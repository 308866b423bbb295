"""Metrics of both programs, as they are declared."""

from collections.abc import Mapping, Sequence

from exposition.declared import Declared
from handbook import markdown
from kma.host import metrics as kma
from ma_site.scrape.declared import DECLARED, MOST_RUNS, MOST_SERVERS, MOST_SETTINGS

HEADS = ("metric", "type", "labels", "meaning")
BOUNDS = (
    ("setting", MOST_SETTINGS, "settings, enabled ones first"),
    ("server", MOST_SERVERS, "servers, by name"),
    ("run", MOST_RUNS, "open instances: a setting on a server"),
)


def pages() -> Mapping[str, str]:
    return {"metrics": _page()}


def _page() -> str:
    return markdown.page(
        "Metrics",
        "What `/metrics` answers, in the text format of Prometheus. How to scrape it, dashboard and rules: "
        "[monitoring](../how-to/monitoring.md). Names and labels are stable.",
        "## The site",
        _table(DECLARED["site"]),
        "A scrape shows at most so many values of a label; `ma_label_values_left_out` counts the rest.",
        markdown.table(("label", "at most", "of"), [(each, f"{most:,}", of) for each, most, of in BOUNDS]),
        "## The feed",
        _table(DECLARED["feed"]),
        "## The worker",
        _table(DECLARED["worker"]),
        "## A KMA",
        _table(kma.OF_KMA),
        f"At most {kma.MOST_SETTINGS:,} settings; `kma_label_values_left_out` counts the rest.",
        "Feed, worker and KMA also answer `process_cpu_seconds_total`, `process_resident_memory_bytes` "
        "and others of their process.",
    )


def _table(declared: Sequence[Declared]) -> str:
    return markdown.table(HEADS, map(_row, declared))


def _row(each: Declared) -> tuple[str, ...]:
    labels = ", ".join(map(markdown.code, each.labels))
    return markdown.code(each.name), each.kind.value, labels, markdown.plain(each.says)
