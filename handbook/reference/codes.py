"""Codes that entries of the audit and alerts hold."""

from collections.abc import Mapping
from datetime import timedelta

from alerts.kinds import AlertKind
from alerts.models.alert import Severity
from alerts.sources import every_kind
from console.audit import text
from handbook import markdown


def pages() -> Mapping[str, str]:
    return {"audit-codes": _audit(), "alert-kinds": _alerts()}


def _audit() -> str:
    rows = [(markdown.code(code), markdown.plain(str(words))) for code, words in sorted(text.ACTIONS.items())]
    return markdown.page(
        "Audit codes",
        "The audit stores what was done as a code, and shows it in the reader's language. "
        "A refused attempt has the same code; its entry says why.",
        markdown.table(("code", "action"), rows),
    )


def _alerts() -> str:
    heads = ("kind", "label", "severity", "unit of its value", "opens at", "for", "closes below", "for")
    return markdown.page(
        "Alert kinds",
        "Each kind watches one value. Thresholds are those of a new site. "
        "*Alerts → Alert rules* changes them for the site and for each pool.",
        markdown.table(heads, [_row(kind) for kind in every_kind()]),
        "## Recommended actions",
        "\n".join(
            f"{markdown.code(kind.name)}\n: {markdown.plain(str(kind.what_to_do))}\n"
            for kind in every_kind()
            if str(kind.what_to_do)
        ),
    )


def _row(kind: AlertKind) -> tuple[str, ...]:
    limits = kind.limits
    return (
        markdown.code(kind.name),
        markdown.plain(str(kind.label)),
        str(Severity(kind.severity).label),
        markdown.plain(str(kind.unit)),
        f"{limits.upper:,g}",
        _duration(limits.open_after),
        f"{limits.lower:,g}",
        _duration(limits.close_after),
    )


def _duration(time: timedelta) -> str:
    seconds = round(time.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
