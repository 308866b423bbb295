"""What ./ma upgrade says before it changes anything, and where its way back leads."""

import json
from pathlib import Path

import pytest

from deploy import config as configuration
from deploy import secret_files
from deploy.commands import upgrade
from deploy.commands.upgrade import lines_of, plan_of, targets
from deploy.console import DeployError
from deploy.layout import Layout
from ma_site.upgrades import ADDS, CHANGED, COPIED, INDEXES, MAKES, READ, RUNS, estimate


def step(
    migration: str, rows: int = 0, seconds: float = 0.0, *, reversible: bool = True
) -> dict[str, object]:
    table = migration.replace(".", "_")
    return {
        "migration": migration,
        "table": table,
        "rows": rows,
        "seconds": seconds,
        "reversible": reversible,
    }


@pytest.mark.parametrize(
    ("kind", "rows", "sqlite", "seconds"),
    [
        (MAKES, 10**9, True, 0),
        (ADDS, COPIED, True, 1),
        (ADDS, COPIED + 1, True, 2),
        (ADDS, 10**9, False, 0),
        (INDEXES, 3 * READ, False, 3),
        (RUNS, CHANGED, True, 1),
        (RUNS, 0, True, 0),
    ],
)
def test_how_long_a_migration_locks_goes_by_the_rows_of_its_table(
    kind: str, rows: int, sqlite: bool, seconds: float
) -> None:
    assert estimate(kind, rows, sqlite=sqlite) == seconds


def test_what_would_be_done_is_said() -> None:
    steps = [step("dlq.0004_a", 700_000, 7.0), step("dlq.0004_a"), step("console.0002_b", reversible=False)]
    plan = plan_of({"steps": steps, "applied": ["dlq.0003_x"], "jobs": 2})
    assert (plan.migrations, plan.seconds) == (("dlq.0004_a", "console.0002_b"), 7.0)
    lines = lines_of(plan, "9.9.9")
    assert lines[0] == "version 9.9.9: 2 migrations are missing"
    assert "    dlq_0004_a: 700000 rows, about 7 s" in lines
    assert "  no way back but the backup from: console.0002_b" in lines
    assert any("2 jobs on messages are open" in line for line in lines)


def test_the_way_back_leads_to_the_last_migration_of_each_app_of_before() -> None:
    found = dict(targets(["dlq.0001_initial", "dlq.0002_redirect_elsewhere", "auth.0012_x"]))
    assert found["dlq"] == "0002_redirect_elsewhere" and found["console"] == "zero" and "auth" not in found


def test_an_upgrade_that_is_begun_again_goes_back_to_where_the_first_began(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    first = plan_of({"steps": [step("dlq.0004_a", reversible=False)], "applied": ["dlq.0003_x"], "jobs": 0})
    upgrade._remember(layout, first, tmp_path / "one")
    second = plan_of({"steps": [step("dlq.0005_b")], "applied": ["dlq.0003_x", "dlq.0004_a"], "jobs": 0})
    upgrade._remember(layout, second, tmp_path / "two")
    file = layout.run / "upgrade.json"
    known = json.loads(file.read_text())
    assert known["applied"] == ["dlq.0003_x"] and known["one_way"] == ["dlq.0004_a"]
    assert known["backup"] == str(tmp_path / "one"), "the other one is of a half migrated database"
    upgrade._end(layout)
    upgrade._remember(layout, second, tmp_path / "two")
    known = json.loads(file.read_text())
    assert known["applied"] == ["dlq.0003_x", "dlq.0004_a"] and known["one_way"] == []


def test_from_a_migration_of_one_way_only_the_backup_leads_back(tmp_path: Path) -> None:
    config, layout = configuration.read({"MA_DATA": str(tmp_path)}), Layout(tmp_path)
    with pytest.raises(DeployError, match="there is no upgrade to take back"):
        upgrade._back(config, layout)
    content = {"applied": [], "one_way": ["dlq.0004_a"], "backup": "/srv/one"}
    secret_files.write(layout.run / "upgrade.json", json.dumps(content))
    with pytest.raises(DeployError, match=r"no way leads back from dlq\.0004_a: .*restore --apply /srv/one"):
        upgrade._back(config, layout)
