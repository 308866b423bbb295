"""*Stay* and what the broker counts: a server that is lost while its message blocks."""

from functools import partial
from pathlib import Path

import pytest

from contract.outcomes import AfterLast
from tests.broker.houses import RealHouse, Setting
from tests.kma.delivery.test_ordered import MINUTE, POISON, seen, send_row
from tests.kma.fake_ma import FakeMa
from tests.kma.fakes import eventually
from tests.kma.queues import of
from tests.kma.worker import Worker
from tests.services import throw_away_folder


def _tried_or_dead(house: RealHouse, setting: Setting, truth: Path, losses: int) -> bool:
    tried = sum(identity == POISON for identity, _ in seen(truth))
    return tried > losses or bool(house.dead(setting))


@pytest.mark.parametrize(("most", "losses"), [(-1, 4), (2, 30)], ids=["no maximum", "a maximum of 2"])
def test_only_without_a_maximum_it_stays_through_any_number_of_losses(
    house: RealHouse, most: int, losses: int
) -> None:
    """The broker may count each loss, or not; where these reach its maximum it moves the message itself, and
    loses none."""
    with throw_away_folder("stays") as folder:
        ma, truth = FakeMa(), folder / "truth"
        setting = house.setting(attempts=most, delay=MINUTE, exclusive=True)
        send_row(house, setting, fails=99)
        ma.want(
            of(
                setting, ordered=True, blocked_seconds=-1.0, max_attempts=most, after_last=AfterLast.STAY,
                parameters={"truth_file": str(truth)},
            )
        )  # fmt: skip
        worker = Worker(folder, ma, house.kma)
        try:
            for number in range(losses):
                worker.start()
                eventually(
                    partial(_tried_or_dead, house, setting, truth, number), "an attempt after each loss", 40
                )
                worker.kill()
                eventually(lambda: house.figures(setting).delivering == 0, "given back", 40)
                if house.dead(setting):
                    break
            left, dead = house.figures(setting).messages, len(house.dead(setting))
            order = [identity for identity, _ in seen(truth)]
            if most < 0:
                assert (left, dead) == (4, 0) and order[-1] == POISON and "ID:3" not in order
            else:
                assert dead == 1 and left + len(set(order)) >= 5
        finally:
            worker.stop()
            ma.close()
