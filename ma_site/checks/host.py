"""The accounts of KMAs and publishers sign in, and may not manage the broker."""

import os
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from django.conf import settings

from agents.models import Server
from agents.site.components import unknown_proxy_seen
from broker.port import AccessRefused, Account, BrokerError
from broker.stomp.client import StompManagement
from console.database.storage import database_file, server_clock
from contract import __version__
from ma_site import hosts
from ma_site.checks.finding import Finding, bad, good, register_check

# Where ./ma keeps the passwords of this machine's installation.
FILES = {"kma": "broker_kma", "publisher": "broker_publisher"}
NOT_SIGNED_IN = "AMQ229031"


@register_check("broker accounts", 50)
def check_accounts(now: datetime) -> Iterator[Finding]:
    for user, name in FILES.items():
        path = Path(settings.MA_DATA) / "secrets" / name
        if path.is_file():
            yield _check_account(
                replace(
                    settings.MA_BROKER_STOMP, user=user, password=path.read_text(encoding="utf-8").strip()
                )
            )
        else:
            yield good(f"{user}: not checked, its password is not on this machine")


def _check_account(account: Account) -> Finding:
    trying = StompManagement(account, f"MA.reply.doctor-{os.getpid()}", timeout=5.0)
    try:
        trying.attribute("broker", "Version")
    except AccessRefused as error:
        if NOT_SIGNED_IN in str(error):
            return bad(
                f"{account.user}: cannot sign in", "./ma down; ./ma up writes the broker's accounts again."
            )
        return good(f"{account.user}: signs in and cannot manage the broker")
    except BrokerError as error:
        return bad(f"{account.user}: {error}", "./ma logs artemis")
    finally:
        trying.close()
    return bad(
        f"{account.user}: can manage the broker; only the operations account should be able to",
        "docs/reference/broker-accounts.md",
    )


# -- clocks: leases, ages and schedules compare instants of database, servers and site -----------------------


MOST_SECONDS = 5.0


@register_check("clock", 80)
def check_clock(now: datetime) -> Iterator[Finding]:
    skews = {
        f"server {server.name}": server.clock_skew_seconds
        for server in Server.objects.exclude(last_seen_at=None)
    }
    if at := server_clock():
        skews["database"] = (at - datetime.now(UTC)).total_seconds()
    wrong = {name: skew for name, skew in skews.items() if abs(skew) > MOST_SECONDS}
    for name, skew in wrong.items():
        yield bad(
            f"{name} differs by {skew:+.1f} s from this machine", "Run a time service (chrony, ntpd) on both."
        )
    if not wrong:
        yield good(f"{len(skews)} clocks compared, all within {MOST_SECONDS:.0f} s")


# -- two hosts of one site were told the same ----------------------------------------------------------------


@register_check("hosts", 85)
def check_hosts(now: datetime) -> Iterator[Finding]:
    found, wrong = list(hosts.others(now)), False
    for other in found:
        if other.version != __version__:
            wrong = True
            yield bad(
                f"{other.host} runs version {other.version}, this host {__version__}",
                "Upgrade both: docs/how-to/two-hosts.md.",
            )
        if other.variables:
            wrong = True
            yield bad(
                f"{other.host} has other values than this host: {', '.join(other.variables)}",
                "Give both the same values and restart them: docs/how-to/two-hosts.md.",
            )
    if found and not wrong:
        yield good(f"the same settings as {', '.join(other.host for other in found)}")


# -- file systems that this installation writes to -----------------------------------------------------------
# For each that is full: what may be deleted and what must not. `./ma status` says the same with its own means
# (`deploy/disk.py`): the deployment imports none of ours.


MB = 1024 * 1024
# Below it SQLite, the journal of the broker and the spools of KMAs cannot grow by what one busy minute
# brings.
LEAST_FREE_MB = 100
# Above it the broker takes no messages (max-disk-usage of broker.xml).
MOST_USED_PERCENT = 95


@register_check("disk", 5)
def check_disk(now: datetime) -> Iterator[Finding]:
    roomy = []
    for place, names in _places().items():
        if says := problem_at(place):
            yield bad(f"{place} ({', '.join(names)}): {says}", what_to_do(Path(settings.MA_DATA)))
        else:
            roomy.append(shutil.disk_usage(place).free)
    if roomy:
        yield good(f"{min(roomy) // MB} MB free")


def problem_at(place: str | Path) -> str:
    """Returns what is wrong with the file system of a folder that exists; empty: nothing."""
    facts = os.statvfs(place)
    # Some file systems have no number of files: they say 0 of 0.
    free_files = facts.f_favail if facts.f_files else 1
    return problem(facts.f_bavail * facts.f_frsize, facts.f_blocks * facts.f_frsize, free_files)


def problem(free: int, total: int, free_files: int) -> str:
    """Returns what is wrong; empty: nothing, or a file system that does not say how large it is."""
    if not total:
        return ""
    if free < LEAST_FREE_MB * MB:
        return f"full: {free // MB} MB free of {total // MB} MB"
    if not free_files:
        return "full: no free inodes (df -i)"
    if 100 * (total - free) > MOST_USED_PERCENT * total:
        return f"nearly full: {free // MB} MB free of {total // MB} MB; a broker on it accepts no messages"
    return ""


def what_to_do(data: Path) -> str:
    """Returns what may be deleted and what must not be, with the commands."""
    quoted = shlex.quote(str(data))
    kept = "kma (spools), broker (journal: messages), db.sqlite3* (database), archive, secrets"
    said = [
        f"Find large files: du -xsh {quoted}/* | sort -h",
        f"May be deleted: old logs, rm -f {quoted}/log/*.log.[0-9]*",
    ]
    if (data / "pipeline").is_dir():
        said.append(f"while no pipeline run is in progress, its files, rm -rf {quoted}/pipeline/*")
    said.append(f"Never delete in {quoted}: {kept}")
    said.append("Retention deletes old rows: ./ma manage apply_retention --dry-run")
    said.append("Then: ./ma status; if processes do not restart: ./ma down, ./ma up")
    return ". ".join(said) + "."


def _places() -> dict[str, list[str]]:
    """One folder of each file system, with what stands on it."""
    data = Path(settings.MA_DATA)
    wanted = {"data folder": data, "broker": data / "broker", "spools": data / "kma", "logs": data / "log"}
    if file := database_file():
        wanted["database"] = file.absolute().parent
    if settings.MA_ARCHIVE_URL.startswith("file://"):
        wanted["archive"] = Path(unquote(urlsplit(settings.MA_ARCHIVE_URL).path))
    found: dict[int, tuple[str, list[str]]] = {}
    for name, folder in wanted.items():
        place = next((each for each in (folder, *folder.parents) if each.exists()), None)
        if place is not None:
            found.setdefault(place.stat().st_dev, (str(place), []))[1].append(name)
    return dict(found.values())


# -- whose X-Forwarded-For is believed: of the proxies before the site, and of nobody else -------------------


@register_check("proxies", 110)
def check_proxies(now: datetime) -> Iterator[Finding]:
    if any(network.prefixlen == 0 for network in settings.MA_TRUSTED_PROXIES):
        yield bad(
            "MA_TRUSTED_PROXIES contains every address: anyone can forge the client address in the audit log "
            "and bypass sign-in delays",
            "Set MA_TRUSTED_PROXIES to the addresses of your proxies only, then ./ma down, ./ma up.",
        )
    elif address := unknown_proxy_seen(now):
        yield bad(
            f"sign-ins from {address} have X-Forwarded-For, but it is not a trusted proxy: all of them share "
            "its address",
            f"If {address} is your proxy, add it to MA_TRUSTED_PROXIES, then ./ma down, ./ma up "
            "(docs/reference/environment.md).",
        )
    else:
        yield good("no sign-ins through unknown proxies")
