"""Moving letters back: to one queue only, exact, harmless when repeated."""

import pytest

from broker.management.dead_letters import (
    count_dead_letters,
    delete_dead_letters,
    move_dead_letters,
    move_dead_letters_until,
    move_id_range,
)
from broker.management.queues import queue_figures
from broker.port import ManagementFailed, Settle
from tests.broker.houses import DLA, House, eventually, orig_id, orig_queue


def test_a_letter_goes_to_its_own_subscription_only(house: House) -> None:
    setting = house.setting()
    other = house.setting(address=setting.address)
    letters = house.die(setting, "a", "b")
    before = house.figures(other).added
    move_dead_letters(house.management, setting.dead, [orig_id(letter) for letter in letters], setting.key)
    _, owner = house.consume(setting)
    got = [owner.got(), owner.got()]
    assert [each.text for each in got] == ["a", "b"]
    assert [each.count for each in got] == [0, 0]
    assert house.figures(other).added == before
    eventually(lambda: house.dead(setting) == [])


def test_a_selection_leaves_the_others_where_they_are(house: House) -> None:
    setting = house.setting()
    letters = house.die(setting, *"abcdef")
    chosen = [orig_id(letter) for letter in letters if letter.body.value in "ace"]
    move_dead_letters(house.management, setting.dead, chosen, setting.key)
    eventually(lambda: house.figures(setting).messages == 3)
    assert [letter.body.value for letter in house.dead(setting)] == ["b", "d", "f"]


@pytest.mark.parametrize(
    "chosen", [{0, 1, 2, 4, 7, 11, 16, 22, 29, 37}, set(range(0, 40, 2)), set(range(3, 8)), {39}]
)
def test_of_many_letters_just_the_chosen_ones_move(house: House, chosen: set[int]) -> None:
    setting = house.setting()
    letters = house.die(setting, *(str(number) for number in range(40)))
    ids = [orig_id(letter) for letter in letters if int(letter.body.value) in chosen]
    assert move_dead_letters(house.management, setting.dead, ids, setting.key) == len(chosen)
    eventually(lambda: house.figures(setting).messages == len(chosen))
    assert {int(letter.body.value) for letter in house.dead(setting)} == set(range(40)) - chosen


def test_moving_the_same_letters_again_does_nothing(house: House) -> None:
    setting = house.setting()
    letters = house.die(setting, "a", "b")
    ids = [orig_id(letters[0])]
    move_dead_letters(house.management, setting.dead, ids, setting.key)
    eventually(lambda: house.figures(setting).messages == 1)
    move_dead_letters(house.management, setting.dead, ids, setting.key)
    assert house.figures(setting).messages == 1
    assert len(house.dead(setting)) == 1


def test_more_letters_than_one_operation_takes_all_go_back(house: House) -> None:
    setting = house.setting()
    letters = house.die(setting, *(str(number) for number in range(520)))
    move_dead_letters(house.management, setting.dead, [orig_id(letter) for letter in letters], setting.key)
    eventually(lambda: house.figures(setting).messages == 520)
    assert house.dead(setting) == []


def test_all_up_to_a_letter_go_back_in_slices(house: House) -> None:
    setting = house.setting()
    letters = house.die(setting, *"abcde")
    last = orig_id(letters[3])
    move_dead_letters_until(house.management, setting.dead, last, setting.key, 3)
    eventually(lambda: house.figures(setting).messages == 3)
    move_dead_letters_until(house.management, setting.dead, last, setting.key, 3)
    eventually(lambda: house.figures(setting).messages == 4)
    assert [letter.body.value for letter in house.dead(setting)] == ["e"]


def test_a_count_of_nothing_is_refused_because_it_would_move_everything(house: House) -> None:
    setting = house.setting()
    letters = house.die(setting, "a", "b")
    with pytest.raises(ValueError, match="every message"):
        move_dead_letters_until(house.management, setting.dead, orig_id(letters[0]), setting.key, 0)
    move_dead_letters(house.management, setting.dead, [], setting.key)
    assert len(house.dead(setting)) == 2


def test_a_missing_target_moves_nothing(house: House) -> None:
    setting = house.setting()
    letters = house.die(setting, "a")
    with pytest.raises(ManagementFailed):
        move_dead_letters(house.management, setting.dead, [orig_id(letters[0])], "nobody-made-this")
    assert len(house.dead(setting)) == 1


def test_a_message_that_was_given_back_says_so_and_may_die_again_with_a_new_id(house: House) -> None:
    setting = house.setting()
    letter = house.die(setting, "again")[0]
    move_dead_letters(house.management, setting.dead, [orig_id(letter)], setting.key)
    consumer, owner = house.consume(setting)
    got = owner.got()
    assert orig_queue(got.message) == setting.dead
    assert orig_id(got.message) != orig_id(letter)
    consumer.settle([(got.tag, Settle.REJECT)])
    second = house.until_dead(setting, 1)[0]
    assert orig_queue(second) == setting.key
    assert orig_id(second) != orig_id(letter)
    # In the catch-all it is not, though its last origin was no subscription.
    assert setting.dead not in [orig_queue(each) for each in house.look(DLA, "DLQ.unknown", limit=100_000)]


def test_the_bin_takes_what_is_moved_there_though_its_filter_matches_nothing(house: House) -> None:
    setting = house.setting()
    letter = house.die(setting, "rubbish")[0]
    move_dead_letters(house.management, setting.dead, [orig_id(letter)], "DLQ.bin")
    eventually(lambda: "rubbish" in [each.body.value for each in house.look(DLA, "DLQ.bin")])
    eventually(lambda: house.dead(setting) == [])
    house.management.call("queue.DLQ.bin", "removeAllMessages")


def test_only_the_letters_that_are_named_are_removed_from_the_bin(house: House) -> None:
    one, other = house.setting(), house.setting()
    letters, left = house.die(one, *"abc"), house.die(other, "d")[0]
    ids = sorted(orig_id(letter) for letter in letters)
    move_dead_letters(house.management, one.dead, ids, "DLQ.bin")
    move_dead_letters(house.management, other.dead, [orig_id(left)], "DLQ.bin")

    def binned() -> dict[tuple[str, int], str]:
        lying = house.look(DLA, "DLQ.bin")
        return {(orig_queue(each), orig_id(each)): str(each.body.value) for each in lying}

    eventually(lambda: len(binned()) == 4)
    known = {body: place[1] for place, body in binned().items()}
    named = [known["a"], known["c"], known["d"]]
    assert count_dead_letters(house.management, "DLQ.bin", one.dead, named) == 2
    assert delete_dead_letters(house.management, "DLQ.bin", one.dead, named) == 2
    assert delete_dead_letters(house.management, "DLQ.bin", one.dead, [known["a"], known["c"]]) == 0
    assert count_dead_letters(house.management, "DLQ.bin", one.dead, named) == 0
    assert count_dead_letters(house.management, "DLQ.bin", one.dead, [known["b"]]) == 1
    assert sorted(binned().values()) == ["b", "d"]
    house.management.call("queue.DLQ.bin", "removeAllMessages")


def test_a_range_of_ids_goes_back_and_at_most_so_many(house: House) -> None:
    setting = house.setting()
    ids = sorted(orig_id(letter) for letter in house.die(setting, *"abcdef"))
    before = queue_figures(house.management, setting.dead, DLA)
    move_id_range(house.management, setting.dead, ids[1], ids[3], setting.key, 2)
    eventually(lambda: house.figures(setting).messages == 2)
    move_id_range(house.management, setting.dead, ids[1], ids[3], setting.key, 3)
    eventually(lambda: house.figures(setting).messages == 3)
    assert sorted(orig_id(letter) for letter in house.dead(setting)) == [ids[0], *ids[4:]]
    after = queue_figures(house.management, setting.dead, DLA)
    assert (before.messages - after.messages, after.added) == (3, before.added), "figures tell what left"
