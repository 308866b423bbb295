"""What a newcomer reads when everything runs: the last lines of `./ma up`."""

from tests.acceptance.house import House


def test_the_last_lines_say_where_as_whom_and_what_next(house: House) -> None:
    last = house.printed.rstrip().splitlines()[-8:]
    words = {line.split()[0] for line in last if line.strip()}
    assert {"address:", "user:", "password:", "next:", "check:"} <= words, last
    assert house.facts["url"] in "\n".join(last) and house.password in "\n".join(last)


def test_a_second_start_shows_the_first_password_again_while_nobody_has_changed_it(house: House) -> None:
    house.down()
    assert house.password in house.up()
