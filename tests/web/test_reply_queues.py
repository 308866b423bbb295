"""Two readers of one reply queue would take each other's answers."""

import os
from pathlib import Path

import pytest

from tests import environment
from tests.kit.other_host import hosts

pytestmark = pytest.mark.process

ASKS = "import django; django.setup(); from console.broker import reply_queue as q; print(q(), q() == q())"


def test_processes_of_two_hosts_with_one_name_and_one_pid_have_one_each(tmp_path: Path) -> None:
    environ = dict(os.environ) | environment.values(tmp_path) | {"DJANGO_SETTINGS_MODULE": "ma_site.settings"}
    with hosts(tmp_path) as found:
        both = [found.python("same", "-c", ASKS, environ=environ) for _ in range(2)]
        said = []
        for process in both:
            process.wait(60)
            said.append(process.said().split())
    assert [same for _name, same in said] == ["True", "True"]
    assert all(name.startswith("MA.reply.same-1-") for name, _same in said)
    assert said[0] != said[1]
