"""The pure rules, and the tests of each by the names of their files, so that a test may move to another
folder."""

from tests.mutation.processes import REPOSITORY, Rule

NAMES: dict[str, tuple[str, ...]] = {
    "retention/rules.py": ("test_retention_rule",),
    "metrics/rules.py": ("test_figure_spans",),
    "dlq/replay/rules/slices.py": ("test_replay_planning", "test_replay_pace"),
    "dlq/replay/rules/ladder.py": ("test_ladder",),
    "dlq/outcomes/rules.py": ("test_replay_outcomes",),
    "agents/activations/rules/placement.py": ("test_choosing",),
    "agents/groups/rules.py": ("test_group_order", "test_launching_rules"),
    "contract/outcomes.py": ("contract/test_outcomes", "test_breaker"),
    "contract/redelivery.py": ("test_redelivery",),
    "contract/acknowledgements.py": ("contract/test_acknowledgements",),
    "contract/reasons.py": ("contract/test_reasons",),
    "contract/version_3.py": ("contract/test_version_3",),
    "contract/fingerprint.py": ("test_fingerprint",),
    "contract/message_key.py": ("contract/test_message_key",),
    "contract/histogram.py": ("contract/test_histogram",),
    "contract/typed.py": ("test_typed", "test_wire"),
    "agents/activations/rules/outcome.py": ("test_draining", "test_final_states", "test_partial"),
    "failures/error_groups/rules.py": ("test_comparing", "test_agent_versions", "unit/test_odd_servers"),
    "failures/intake/gaps.py": ("test_gaps",),
    "failures/what_if.py": ("test_what_if",),
    "dlq/index/rules.py": ("test_judging",),
    "contract/breaker.py": ("test_breaker",),
    "agents/breaker/rules.py": ("test_quorum",),
    "agents/provisioning/drain.py": ("test_drain",),
    "agents/timetable.py": ("test_windows",),
    "agents/schedules/rules.py": ("test_window_verdicts",),
    "agents/freezes/rules.py": ("test_freeze_rules",),
    "agents/schedules/text.py": ("test_schedule_words",),
    "alerts/rules.py": ("test_alert_deciding",),
    "alerts/notices/routing.py": ("test_notice_hours",),
    "dlq/replay/preflight/rules.py": ("test_preflight",),
    "kma/delivery/breaker.py": ("delivery/test_counting",),
    "contract/wire.py": ("contract/test_wire",),
    "dlq/edit/rules/json_pointer.py": ("test_json_pointers",),
    "dlq/subscriptions/rules.py": ("test_waiting_rows",),
    "contract/redis_url.py": ("contract/test_redis_url",),
    "contract/support.py": ("contract/test_support",),
    "contract/encryption.py": ("contract/test_encryption", "web/test_certificates"),
    "broker/amqp/compressed.py": ("amqp/test_cut_bodies",),
    "dlq/edit/rules/bulk_rule.py": ("test_edit_rule_forms", "test_edit_rules"),
    "dlq/edit/rules/values.py": ("test_edit_values",),
    "dlq/edit/rules/changes.py": ("test_edit_values",),
    "agents/crontab.py": ("test_crontabs",),
    "contract/messages.py": ("test_contract_surface", "contract/test_messages"),
    "contract/records.py": ("test_contract_surface", "contract/test_messages"),
    "contract/names.py": ("test_contract_surface", "contract/test_names", "test_waiting_rows"),
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
