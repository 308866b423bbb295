"""Many cells in one container: each is brought to its moment, then one kill comes for all of them."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.broker.houses import House
from tests.kma.cells.table import OPEN, Cell, Event
from tests.kma.cells.trial import KINDS, MODULES, Trial
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import eventually
from tests.kma.worker import Worker

BEFORE = (Event.KMA_KILLED_BEFORE, Event.BROKER_KILLED_BEFORE)
AFTER = (Event.KMA_KILLED_AFTER, Event.BROKER_KILLED_AFTER)
# Loaded in the container itself; its children have no token.
SITE = (
    "import os\nif 'KMA_TOKEN' in os.environ and os.environ['TEST_HOLDS']:\n    "
    "import tests.kma.cells.holds\n"
)
# Seconds until the broker has on its disk what it does not confirm.
A_MOMENT = 0.5


class Stand:
    def __init__(self, house: House, worker: Worker, ma: FakeMa, folder: Path, cells: Sequence[Cell]) -> None:
        self.house, self.worker, self.ma = house, worker, ma
        self.holds = folder / "holds"
        site = folder / "site"
        for made in (self.holds, site):
            made.mkdir()
        (site / "sitecustomize.py").write_text(SITE)
        root = worker.environment["PYTHONPATH"]
        worker.environment |= {
            "PYTHONPATH": f"{site}:{root}",
            "TEST_HOLDS": str(self.holds),
            "KMA_AGENTS": ",".join(MODULES),
        }
        self.trials = [self._trial(cell, folder / str(cell)) for cell in cells]
        self.runs = [trial.desired for trial in self.trials]

    def _trial(self, cell: Cell, folder: Path) -> Trial:
        folder.mkdir()
        trial = Trial(self.house, cell, folder)
        if cell.event in BEFORE + AFTER:
            moment = "before" if cell.event in BEFORE else "after"
            (self.holds / f"{trial.setting.key}.{moment}").touch()
        return trial

    def bring_to_the_moment(self) -> None:
        self.ma.want(*self.runs)
        self.worker.start()
        eventually(
            lambda: all(self._there(trial) for trial in self.trials), f"moment; see {self.worker.log}", 90
        )
        time.sleep(A_MOMENT)

    def _there(self, trial: Trial) -> bool:
        held = (self.holds / f"{trial.setting.key}.held").exists()
        if trial.cell.event in OPEN:
            return bool(self._told(trial, "acknowledgement_opened"))
        return held if trial.cell.event in BEFORE + AFTER else trial.begun

    def until_the_loss_is_seen(self) -> None:
        """What returns before that is told to nobody, and counts as handled. A run that is held cannot see
        it."""
        unheld = {trial.setting.key for trial in self.trials if trial.cell.event not in BEFORE + AFTER}

        def seen() -> bool:
            apart = {run["setting"] for run in self.ma.last["runs"] if not run["connected"]}
            return unheld <= apart

        eventually(seen, f"loss of the connection in each run; see {self.worker.log}", 60)

    def want_nothing(self) -> None:
        """Also not at the container's next start, which begins with what it was told last."""
        self.ma.want()
        (self.worker.folder / self.ma.server / "desired.json").unlink()

    def go_on(self) -> None:
        (self.holds / "go").touch()
        for trial in self.trials:
            trial.gate.touch()

    def records_of(self, trial: Trial) -> dict[str, list[dict[str, Any]]]:
        return {kind: self._told(trial, kind) for kind in KINDS}

    def _told(self, trial: Trial, kind: str) -> list[dict[str, Any]]:
        return [one for one in self.ma.contents(kind) if one["run"]["setting"] == trial.setting.key]

    def until_closed(self) -> None:
        eventually(
            lambda: len(self.ma.contents("closing")) == len(self.trials), "closing record of each run", 60
        )
