"""Every server's KMA is heard, has room in its spool, and enabled settings run."""

from collections.abc import Iterator
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, Q

from agents.activations.queries import settings_not_allowed, withheld_runs
from agents.liveness import is_expected
from agents.models import Activation, ActivationState, Pool, Server, ServerState, Withheld
from agents.servers.admission import (
    VALID_AT_A_TIME,
    support_advice,
    support_problem,
    version_advice,
    version_problem,
)
from failures.intake import spools
from ma_site.checks.finding import Finding, bad, good, register_check
from ma_site.demo import POOL as DEMO_POOL
from ma_site.demo import SAMPLE_PREFIXES

# Names of agents that are looked at per server.
MOST_AGENTS = 1000
MOST_WITHHELD = 20


@register_check("KMAs", 100)
def check_kmas(now: datetime) -> Iterator[Finding]:
    servers = list(Server.objects.all())
    if not servers:
        yield bad("no servers", "./ma manage create_server NAME; then start its KMA with the token.")
    for server in servers:
        yield _heard(server, now)
        if server.spool_full:
            yield bad(
                f"{server.name}: the spool is full, the server accepts no messages",
                f"./ma logs kma-{server.name}",
            )
        yield from _offered(server, now)
        for problem in server.problems:
            yield bad(f"{server.name}: {problem}", f"./ma logs kma-{server.name}")
    withheld = withheld_runs().exclude(withheld_because=Withheld.AGENT_NOT_ALLOWED)
    for run in withheld.select_related("activation__setting", "server")[:MOST_WITHHELD]:
        yield bad(
            f"{run.activation.setting.key} is enabled but not sent to {run.server.name}: "
            f"{run.withheld_because}",
            "See the page of the setting for the fix. Other settings are not affected.",
        )
    for setting in settings_not_allowed()[:MOST_WITHHELD]:
        yield bad(
            f"{setting.key} is enabled but runs nowhere: its pool {setting.pool.name} does not allow "
            f"{setting.agent}",
            "Choose an allowed agent, or allow this agent in the pool (Administration → Pools).",
        )
    yield from _missing(now)
    waiting = Activation.objects.filter(state=ActivationState.PENDING, setting__enabled=True)
    for activation in waiting.select_related("setting"):
        yield bad(
            f"{activation.setting.key} is enabled but does not run: {activation.reason}",
            "Start a KMA of the pool with the agent's module in KMA_AGENTS.",
        )


def _missing(now: datetime) -> Iterator[Finding]:
    for mark in spools.still_missing(now):
        yield bad(
            f"{mark.server.name}: records {mark.stored_up_to + 1} to {mark.lost_to} of its spool were stored "
            "but are no longer in the database",
            "Keep its KMA running: it sends again the records that it still has. Details: the page of "
            f"{mark.server.name}.",
        )
    for mark in spools.passed_over(now):
        first, last = mark.gaps[-1]
        yield bad(
            f"{mark.server.name}: {mark.never_came} records of its spool were never received, the latest "
            f"{first} to {last}",
            f"Their failures are missing here. Possible causes: the page of {mark.server.name}, "
            "docs/explanation/spool.md. This finding is shown for a day.",
        )


def _offered(server: Server, now: datetime) -> Iterator[Finding]:
    if server.state(now) is not ServerState.ALIVE:
        return
    names = list(server.offered_agents.order_by("name").values_list("name", flat=True)[:MOST_AGENTS])
    if not names:
        yield bad(
            f"{server.name} has no agents: no setting can run there",
            "Add the modules of your agents to KMA_AGENTS, then restart its KMA: docs/how-to/agents.md.",
        )
    samples = [name for name in names if name.startswith(SAMPLE_PREFIXES)]
    others = server.pools.exclude(name=DEMO_POOL).order_by("name")
    pools = [pool.name for pool in others if any(pool.allows(name) for name in samples)]
    if pools:
        yield bad(
            f"{server.name} offers sample agents ({_some(samples)}) to settings of {_some(pools)}, a pool "
            "without the demo",
            "Users who can edit a setting there can run them. Restrict the allowed agents of the pool "
            "(Administration → Pools), remove kma.samples from KMA_AGENTS of that server (./ma up "
            "--no-demo), or remove the server from the pool.",
        )


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


def _heard(server: Server, now: datetime) -> Finding:
    state = server.state(now)
    if state is ServerState.ALIVE and not server.obeys(now):
        seconds = server.seconds_disobeying(now)
        return bad(
            f"{server.name} sends heartbeats but has not applied the desired state for {seconds:.0f} s: "
            "enabling and disabling settings has no effect there",
            f"Check ./ma logs web for failed heartbeats and ./ma logs kma-{server.name} for write errors.",
        )
    if state is ServerState.ALIVE and (problem := support_problem(server.name, server.kma_version)):
        return bad(problem, support_advice(server.kma_version))
    if state is ServerState.ALIVE:
        return good(f"{server.name} is online")
    if not is_expected(server):
        return good(f"{server.name} is {state.value}; not expected, as it has no pool and no valid token")
    if server.last_seen_at is None and server.refused_version is None:
        start = (
            f"start a KMA on its host with this token: KMA_SERVER={server.name} KMA_TOKEN=… "
            f"MA_URL={settings.MA_BASE_URL}"
        )
        return bad(
            f"{server.name}: no heartbeat yet",
            f"./ma manage create_server {server.name} prints a token; {start} (docs/how-to/another-host.md). "
            "Or delete the server in the admin.",
        )
    if server.refused_version is not None:
        return bad(
            version_problem(server.name, server.refused_version), version_advice(server.refused_version)
        )
    assert server.last_seen_at is not None
    seconds = (now - server.last_seen_at).total_seconds()
    return bad(
        f"{server.name}: no heartbeat for {seconds:.0f} s", f"./ma status; ./ma logs kma-{server.name}"
    )


# -- every server that is used has a token, and no one more than two -----------------------------------------


POOLS = Pool.servers.through.objects.filter(server=OuterRef("pk"))


@register_check("tokens", 90)
def check_tokens(now: datetime) -> Iterator[Finding]:
    valid = Count("tokens", filter=Q(tokens__revoked_at=None))
    # A server that was made by name alone and is in no pool yet has nothing to do.
    servers = list(Server.objects.annotate(valid=valid).filter(Q(valid__gt=0) | Exists(POOLS)))
    for server in servers:
        if server.valid == 0:
            yield bad(f"{server.name} has no valid token", f"./ma manage create_server {server.name}")
        elif server.valid > VALID_AT_A_TIME:
            yield bad(f"{server.name} has {server.valid} valid tokens", "Revoke the old tokens in the admin.")
    if all(0 < server.valid <= VALID_AT_A_TIME for server in servers):
        yield good(f"{len(servers)} servers, each with a valid token")
