"""The cells in which the container or the broker is killed: one kill of each, for all of their cells."""

from collections.abc import Iterator

import pytest

from tests.broker.houses import RealHouse
from tests.kma.cells.killing import Stand
from tests.kma.cells.table import BROKER_KILLS, KMA_KILLS, Cell, cells
from tests.kma.cells.trial import Trial
from tests.kma.fake_ma import FakeMa
from tests.kma.worker import Worker
from tests.services import ArtemisService, throw_away_folder

pytestmark = pytest.mark.kill

KMA_CELLS, BROKER_CELLS = list(cells(*KMA_KILLS)), list(cells(*BROKER_KILLS))


class Verdicts:
    """Of each cell what was wrong with it, empty for nothing."""

    def __init__(self) -> None:
        self._wrong: dict[str, list[AssertionError]] = {}

    def judge(self, trial: Trial, *arguments: object) -> None:
        wrong = self._wrong.setdefault(str(trial.cell), [])
        try:
            trial.judge_records(*arguments) if arguments else trial.judge_message()  # type: ignore[arg-type]
        except AssertionError as error:
            wrong.append(error)

    def say(self, cell: Cell) -> None:
        for error in self._wrong[str(cell)]:
            raise error


@pytest.fixture(scope="module")
def killed_kma(artemis: ArtemisService) -> Iterator[Verdicts]:
    house, ma, verdicts = RealHouse(artemis), FakeMa(), Verdicts()
    with throw_away_folder("cells") as folder:
        worker = Worker(folder, ma, house.kma)
        stand = Stand(house, worker, ma, folder, KMA_CELLS)
        try:
            stand.bring_to_the_moment()
            worker.kill()
            for trial in stand.trials:
                verdicts.judge(trial)
            stand.want_nothing()
            worker.start()
            stand.until_closed()
            for trial in stand.trials:
                verdicts.judge(trial, stand.records_of(trial))
            yield verdicts
        finally:
            worker.stop()
            ma.close()
            house.close()


@pytest.mark.parametrize("cell", KMA_CELLS, ids=str)
def test_cell_of_a_killed_container(killed_kma: Verdicts, cell: Cell) -> None:
    killed_kma.say(cell)


@pytest.fixture(scope="module")
def killed_broker() -> Iterator[Verdicts]:
    """A broker of its own: the others keep theirs."""
    ma, verdicts = FakeMa(), Verdicts()
    with throw_away_folder("cells") as folder:
        service = ArtemisService.create(folder / "broker")
        service.start()
        house = RealHouse(service)
        worker = Worker(folder, ma, house.kma)
        stand = Stand(house, worker, ma, folder, BROKER_CELLS)
        try:
            stand.bring_to_the_moment()
            service.kill()
            stand.until_the_loss_is_seen()
            stand.go_on()
            stand.until_closed()  # by themselves: each has handled its message
            service.start()
            house.close()
            house = RealHouse(service)
            for trial in stand.trials:
                trial.house = house
                verdicts.judge(trial)
                verdicts.judge(trial, stand.records_of(trial))
            yield verdicts
        finally:
            worker.stop()
            ma.close()
            house.close()
            service.stop()


@pytest.mark.parametrize("cell", BROKER_CELLS, ids=str)
def test_cell_of_a_killed_broker(killed_broker: Verdicts, cell: Cell) -> None:
    killed_broker.say(cell)
