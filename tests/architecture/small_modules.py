"""Modules under 60 lines, and why each is one of its own: no other module of its folder has the same idea."""

# A framework looks for these names, or every app has them: Django, Celery, the hooks and the codes of an app.
NAMES = frozenset(
    {
        "admin", "admin_site", "apps", "audit_codes", "celery", "formats", "hooks", "models", "reasons",
        "rights", "tasks", "urls", "wsgi",
    }
)  # fmt: skip
FOLDERS = ("management/commands", "templatetags")

RULE = "a pure rule, tested by itself"
SEAM = "many modules ask it, and it knows none of them"
EARLY = "read before Django is there"

REASONS = {
    "agents/api/heartbeat.py": "the one route of a KMA: what it needs no other route loads",
    "agents/groups/rules.py": RULE,
    "agents/site/backups.py": "alerts, Health and doctor ask it; the command that notes one writes it",
    "agents/state_history.py": SEAM,
    "agents/isolation.py": SEAM,
    "alerts/deadman.py": "who evaluates and who stands in both ping: it knows no kind of alert",
    "alerts/queries.py": "the lists of alerts, for the page and REST",
    "alerts/metrics_hooks.py": "what a hook of metrics asks for",
    "console/client_address.py": EARLY,
    "console/jobs/crash.py": "a place of its own, which tests replace",
    "console/leases/queries.py": "what pages and checks say of leases: nothing of how they are won",
    "console/operations/refusals.py": SEAM,
    "console/rest/body_limits.py": EARLY,
    "dlq/index/rules.py": RULE,
    "dlq/pages/replay_progress.py": "one panel of a page that is long already",
    "ma_site/beat.py": "Celery looks for the scheduler by name, and loads nothing else with it",
    "ma_site/upgrades.py": RULE,
    "ma_site/requests/stack.py": "one need of the interpreter, with its reason",
    "contract/fingerprint.py": "a rule of both programs, with its source",
    "failures/intake/gaps.py": RULE,
    "failures/intake/sanitize.py": RULE,
    "failures/protocols/setting_removal.py": "what a hook of agents asks for",
    "failures/saved_filters.py": "derived from console/saved_filters in a few lines",
    "contract/support.py": "a rule of its own, beside the page that has it in words",
    "exposition/notify.py": SEAM,
    "ma_site/upgrades.py": RULE,
    "kma/__main__.py": "the command `kma`, before its environment is read",
    "ma_site/requests/probes.py": "before everything that asks for a host name or the database",
    "kma/agent.py": "what agent authors import; its name never changes",
    "kma/logs.py": SEAM,
    "kma/samples/bench.py": "a sample agent is a module",
    "ma_site/pages/api_docs.py": "a page of another package, in the frame of the site",
    "ma_site/checks/finding.py": "what every check gives, and where it registers",
    "pipeline/crash.py": "a place of its own, which tests replace",
    "pipeline/jobs/odd_servers.py": "a job of the pipeline is a module",
    "pipeline/jobs/replay_success.py": "a job of the pipeline is a module",
}
