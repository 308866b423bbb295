"""Which agents the settings of a pool may run: the one declaration of the rule. Pure."""

from collections.abc import Collection, Iterable

# Names that a text for people lists.
SHOWN = 10


def allows(allowed: Collection[str] | None, agent: str) -> bool:
    """`allowed`: the list of a pool; None where it has none, so that every agent of its servers may run. An
    empty list allows nothing."""
    return allowed is None or agent in allowed


def refused_by(allowed: Collection[str] | None, agents: Iterable[str]) -> frozenset[str]:
    """Those of these agents that the list does not allow."""
    return frozenset(agent for agent in agents if not allows(allowed, agent))


def join_names(names: Collection[str]) -> str:
    """The first of them for people; empty where there is none."""
    first = sorted(names)[:SHOWN]
    return ", ".join(first) + (", …" if len(names) > SHOWN else "")
