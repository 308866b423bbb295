"""What stands last when everything runs."""

from deploy import config as configuration
from deploy.processes.order import Account, account_in, closing_block

CONFIG = configuration.read({"MA_BASE_URL": "https://ma.example.org"})


def test_it_says_where_as_whom_and_what_next() -> None:
    shown = closing_block(CONFIG, Account("admin", "s3cret"))
    for line in (
        "address:  https://ma.example.org/",
        "user:     admin",
        "password: s3cret  (",
        "next:     wait 2 minutes, then open Dead letters",
        "check:    ./ma doctor",
    ):
        assert f"  {line}" in shown
    assert "docs/how-to/operations.md" in shown


def test_a_password_that_was_changed_is_not_shown() -> None:
    shown = closing_block(CONFIG, account_in(""))
    assert "as you set it" in shown and "./ma manage changepassword admin" in shown


def test_without_a_demo_nobody_here_knows_an_administrator() -> None:
    shown = closing_block(CONFIG, None)
    assert "password" not in shown and "./ma manage createsuperuser" in shown


def test_the_password_is_read_from_what_the_site_printed_and_stays_out_of_a_repr() -> None:
    account = account_in("orders: ready\nadministrator: admin  password: s3-cret_  (shown only once)")
    assert (account.user, account.password) == ("admin", "s3-cret_")
    assert "s3-cret_" not in repr(account)
