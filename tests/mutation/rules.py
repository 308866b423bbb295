"""The pure rules, and the tests of each by the names of their files, so that a test may move to another
folder."""

from tests.mutation.processes import REPOSITORY, Rule

NAMES: dict[str, tuple[str, ...]] = {
    "failures/retention/rule.py": ("test_retention_rule",),
    "dlq/replay/planning.py": ("test_replay_planning",),
    "dlq/replay/ladder.py": ("test_ladder",),
    "dlq/replay/outcomes.py": ("test_replay_outcomes",),
    "agents/services/choosing.py": ("test_choosing",),
    "agents/services/group_order.py": ("test_group_order", "test_launching_rules"),
    "contract/outcomes.py": ("contract/test_outcomes", "test_breaker"),
    "contract/redelivery.py": ("test_redelivery",),
    "contract/acknowledging.py": ("test_acknowledging",),
    "contract/reasons.py": ("contract/test_reasons",),
    "contract/version_3.py": ("contract/test_version_3",),
    "contract/connections.py": ("test_waiting_rows",),
    "contract/fingerprint.py": ("test_fingerprint",),
    "contract/identity.py": ("test_identity",),
    "contract/text.py": ("test_typed", "test_wire"),
    "agents/services/draining.py": ("test_draining",),
    "agents/services/final_states.py": ("test_final_states",),
    "failures/comparing.py": ("test_comparing",),
    "failures/odd_server.py": ("test_comparing",),
    "failures/intake/gaps.py": ("test_gaps",),
    "failures/tally.py": ("test_what_if",),
    "failures/what_if.py": ("test_what_if",),
    "dlq/judging.py": ("test_judging",),
    "dlq/pages/pace.py": ("test_replay_pace",),
    "contract/breaker.py": ("test_breaker",),
    "agents/services/quorum.py": ("test_quorum",),
    "agents/services/windows.py": ("test_windows",),
    "agents/services/partial.py": ("test_partial",),
    "agents/services/schedule_words.py": ("test_schedule_words",),
    "agents/alerts/deciding.py": ("test_alert_deciding",),
    "failures/fingerprints/versions.py": ("test_agent_versions",),
    "dlq/preflight/judgement.py": ("test_preflight",),
    "kma/counting.py": ("delivery/test_counting",),
    "contract/typed.py": ("test_typed",),
    "contract/wire.py": ("contract/test_wire",),
    "dlq/editing/pointer.py": ("test_json_pointers",),
    "dlq/waiting/rows.py": ("test_waiting_rows",),
    "contract/nesting.py": ("contract/test_nesting",),
    "contract/redis_url.py": ("contract/test_redis_url",),
    "contract/duplicates.py": ("contract/test_duplicates",),
    "contract/compressed.py": ("contract/test_compressed",),
    "dlq/editing/rules.py": ("test_edit_rule_forms", "test_edit_rules"),
    "dlq/editing/values.py": ("test_edit_values",),
    "dlq/editing/changes.py": ("test_edit_values",),
    "agents/crontabs.py": ("test_crontabs",),
    "contract/errors.py": ("contract/test_wire",),
    "contract/made_up.py": ("test_contract_surface",),
    "contract/messages.py": ("test_contract_surface", "contract/test_messages"),
    "contract/records.py": ("test_contract_surface", "contract/test_messages"),
    "contract/properties.py": ("test_contract_surface", "contract/test_properties"),
}


def rules() -> list[Rule]:
    """Refuses a name that no file has, or two: a rule without its tests would look like one that they do not
    hold."""
    places = [str(place.relative_to(REPOSITORY)) for place in REPOSITORY.glob("tests/**/test_*.py")]
    return [Rule(path, tuple(_only(places, name) for name in names)) for path, names in NAMES.items()]


def _only(places: list[str], name: str) -> str:
    found = [place for place in places if place.endswith(f"/{name}.py")]
    if len(found) != 1:
        raise LookupError(f"not one file of tests has the name {name}: {found}")
    return found[0]
