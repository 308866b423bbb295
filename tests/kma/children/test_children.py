"""Child processes around user code: what it may do to them, and what reaches it."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from broker.port import Settle
from contract.records import RunState
from kma.handling.failure import peak_bytes
from tests.kma.conftest import Make
from tests.kma.fakes import SAMPLES, eventually, message, said

pytestmark = pytest.mark.process

OK = {"do": "ok"}


def test_an_agent_that_stops_when_asked_gives_its_message_back(stage: Make, tmp_path: Path) -> None:
    (tmp_path / "polite_agent.py").write_text(
        "import time\n"
        "from kma.agent import Agent, AgentStopped, agent\n"
        "@agent('test.polite')\n"
        "class Polite(Agent):\n"
        "    def run_agent(self, message, context):\n"
        "        if message.body == 'impolite': raise AgentStopped('nobody asked')\n"
        "        while not context.stopping: time.sleep(0.01)\n"
        "        raise AgentStopped\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        one = stage(
            [message("impolite"), message("wait")],
            modules=("polite_agent",),
            agent="test.polite",
            max_attempts=1,
        )
        one.settled(1)
        eventually(lambda: one.run.report().in_progress == 1, "a handling")
    one.run.stop(close=True)
    one.run.join(10)
    (protocol,) = one.records("protocol")
    assert protocol["exception_type"] == "kma.agent.AgentStopped", (
        "without a stop it is a failure like any other"
    )
    assert len(one.link.settled) == 1


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("import no_such_module_at_all", "ModuleNotFoundError"),
        ("import os; os._exit(9)", "ended (exit:9) before it was ready"),
        (
            "from kma.agent import agent\n@agent('test.broken')\nclass B:\n"
            "    def __init__(self): raise RuntimeError('no database')\n"
            "    def run_agent(self, message, context): pass\n",
            "no database",
        ),
        ("x = 1", "unknown agent 'test.broken'"),
    ],
)
def test_an_agent_that_cannot_start_is_shown_and_takes_no_message(
    stage: Make, tmp_path: Path, code: str, problem: str
) -> None:
    (tmp_path / "broken_agent.py").write_text(code)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        one = stage([message(OK)], modules=("broken_agent",), agent="test.broken")
        eventually(lambda: one.run.report().restarts >= 2, "two tries")
        report = one.run.report()
    assert report.state is RunState.FAILED and problem in said(report.problems)
    assert one.links == [], "no link: an exclusive queue would feed nobody else"
    assert one.records() == []


def test_a_module_that_exits_stops_no_agent_of_the_others(stage: Make, tmp_path: Path) -> None:
    (tmp_path / "leaving_agent.py").write_text("raise SystemExit('no licence')")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        one = stage([message(OK)], modules=("leaving_agent", *SAMPLES))
        one.settled(1)
    assert one.link.outcomes() == {Settle.ACCEPT: 1}


def test_an_agent_that_forks_and_returns_twice_handles_nothing_twice(stage: Make, tmp_path: Path) -> None:
    (tmp_path / "forking_agent.py").write_text(
        "import os\n"
        "from kma.agent import agent\n"
        "@agent('test.forking')\n"
        "def forking(message, context):\n"
        "    with open(context.parameters['file'], 'a') as file: file.write(message.id + '\\n')\n"
        "    os.fork()\n"
    )
    file = tmp_path / "begun"
    numbered = [message(OK, identity=f"ID:{n}") for n in range(20)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        parameters = {"file": str(file)}
        one = stage(numbered, modules=("forking_agent",), agent="test.forking", parameters=parameters)
        one.settled(20)
    assert sorted(file.read_text().split()) == sorted(f"ID:{n}" for n in range(20))


def test_what_an_agent_prints_or_writes_corrupts_nothing(stage: Make, tmp_path: Path) -> None:
    (tmp_path / "noisy_agent.py").write_text(
        "import os, sys\n"
        "from kma.agent import agent\n"
        "print('import', flush=True)\n"
        "@agent('test.noisy')\n"
        "def noisy(message, context):\n"
        "    print('x' * 100_000); os.write(1, b'y' * 1000); sys.stdin.read(); sys.stdout.close()\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        one = stage([message("")], modules=("noisy_agent",), agent="test.noisy")
        one.settled(1)
    assert one.link.outcomes() == {Settle.ACCEPT: 1}


def test_user_code_does_not_see_the_containers_secrets(
    stage: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spying_agent.py").write_text(
        "import os\nfrom kma.agent import agent\n@agent('test.spy')\n"
        "def spy(message, context): context.send('x', ' '.join(os.environ))\n"
    )
    for name in ("KMA_TOKEN", "KMA_BROKER_PASSWORD_FILE", "KMA_REDIS_URL"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    one = stage([message("")], modules=("spying_agent",), agent="test.spy")
    one.settled(1)
    seen = one.link.sent[0].message.body.value.split()
    assert "PATH" in seen
    assert not {"KMA_TOKEN", "KMA_BROKER_PASSWORD", "KMA_BROKER_PASSWORD_FILE", "KMA_REDIS_URL"} & set(seen)


def test_a_child_starts_with_what_is_allowed_and_what_its_operator_names(
    stage: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spying_too.py").write_text(
        "import json, os\nfrom kma.agent import agent\n@agent('test.spy-too')\n"
        "def spy(message, context): context.send('x', json.dumps(dict(os.environ)))\n"
    )
    set_here = {
        *(
            "MA_DATABASE_URL",
            "MA_EMAIL_URL",
            "MA_SECRET_KEY",
            "DJANGO_SUPERUSER_PASSWORD",
            "AWS_SECRET_ACCESS_KEY",
        ),
        *("SHOP_URL", "LC_TIME", "TZ", "KMA_SERVER"),
    }
    for name in set_here:
        monkeypatch.setenv(name, f"value of {name}")
    monkeypatch.setenv("KMA_CHILD_ENV", "SHOP_URL, SHOP_MISSING")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    one = stage([message("")], modules=("spying_too",), agent="test.spy-too")
    one.settled(1)

    seen = json.loads(one.link.sent[0].message.body.value)
    assert set_here & set(seen) == {"SHOP_URL", "LC_TIME", "TZ", "KMA_SERVER"}
    assert seen["SHOP_URL"] == "value of SHOP_URL"
    assert seen["HOME"] == os.environ["HOME"]


@pytest.mark.parametrize("size", [0, 200_000, 20_000_000])
def test_messages_of_every_size_reach_a_child_whole(stage: Make, tmp_path: Path, size: int) -> None:
    (tmp_path / "sizing_agent.py").write_text(
        "import hashlib\nfrom kma.agent import agent\n@agent('test.size')\n"
        "def size(message, context):\n"
        "    if message.attempt == 1: raise ValueError\n"
        "    context.send('x', f'{len(message.body)} {hashlib.sha256(message.body).hexdigest()}')\n"
    )
    body = os.urandom(size)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        one = stage([message(body)], modules=("sizing_agent",), agent="test.size")
        one.settled(2)
    assert one.link.sent[0].message.body.value == f"{size} {hashlib.sha256(body).hexdigest()}"
    assert one.records("protocol")[0]["message"]["body_size"] == size


def test_a_child_that_is_killed_while_idle_is_replaced(stage: Make) -> None:
    one = stage([message(OK)])
    one.settled(1)
    (child,) = _children()
    assert os.getsid(child) != os.getsid(0), "Ctrl-C in a terminal does not reach it"
    os.kill(child, signal.SIGKILL)
    eventually(lambda: one.run.report().restarts == 1, "a restart")
    one.link.put(message(OK))
    one.settled(2)
    assert one.records() == []


def test_a_child_ends_with_its_parents_thread_even_in_the_middle_of_a_handling(stage: Make) -> None:
    one = stage([message({"do": "sleep", "seconds": 60})], grace_seconds=0.1)
    eventually(lambda: one.run.report().in_progress == 1, "a handling")
    (child,) = _children()
    one.end()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_child_is_ready_quickly_and_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import time; began = time.perf_counter()\n"
        "import sys, kma.handling.child, kma.samples.bench\n"
        "heavy = [m for m in ('celery', 'proton', 'django', 'structlog', 'requests') if m in sys.modules]\n"
        "print(time.perf_counter() - began, heavy)"
    )
    bare = (
        "import time; began = time.perf_counter(); import asyncio, email, http.client, json\n"
        "print(time.perf_counter() - began)"
    )
    # Beside what Python itself takes for a few of its modules, by turns: machines are slow, and slow now and
    # then.
    pairs = [
        (float(_lines(sys.executable, code)[0]), float(_lines(sys.executable, bare)[0])) for _ in range(3)
    ]
    assert min(own / other for own, other in pairs) < 4, pairs
    assert _lines(sys.executable, code)[1] == "[]"
    others = code.replace("kma.handling.child", "kma.agent, kma.testing, kma.standalone.child")
    assert _lines(sys.executable, others)[1] == "[]"


ENDLESS = {
    "a loop": ("while True: pass", "RuntimeError", "did not end within 0.2 s"),
    "one that swallows every alarm": (
        "\n   import time\n   while True:\n    try: time.sleep(60)\n    except BaseException: pass", "exit:1",
        "",
    ),
    "a call into C": ("from itertools import repeat; sum(repeat(0))", "exit:1", ""),
}  # fmt: skip


@pytest.mark.parametrize(("body", "kind", "text"), ENDLESS.values(), ids=list(ENDLESS))
def test_a_text_that_never_ends_costs_one_attempt_and_no_more(
    stage: Make, tmp_path: Path, body: str, kind: str, text: str
) -> None:
    (tmp_path / "endless_agent.py").write_text(
        "from kma.handling import failure as limit\nfrom kma.agent import agent\n"
        "limit.CALL_SECONDS, limit.AGAIN_SECONDS, limit.LAST_SECONDS = 0.2, 0.1, 1.0\n"
        f"class Odd(RuntimeError):\n  def __str__(self):\n   {body}\n"
        "@agent('test.endless')\n"
        "def endless(message, context):\n"
        "    if message.body == 'odd': raise Odd\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        odd, good = message("odd", identity="ID:odd"), message("good")
        one = stage([odd, good], modules=("endless_agent",), agent="test.endless", max_attempts=1)
        one.settled(2)
    (protocol,) = one.records("protocol")
    assert protocol["exception_type"].endswith(kind if kind == "exit:1" else "Odd")
    assert text in protocol["exception_text"] and protocol["message"]["key"] == "ID:odd"
    assert one.link.outcomes() == {Settle.ACCEPT: 1, Settle.FAIL: 1}


@pytest.mark.parametrize(
    "end", [{"do": "raise"}, {"do": "exit"}, {"do": "kill"}, {"do": "sleep", "seconds": 60}]
)
def test_the_memory_that_a_process_held_is_in_the_protocol_however_it_ended(
    stage: Make, end: dict[str, object]
) -> None:
    """More than this process ever held: until then the kernel cannot tell one from the other."""
    megabytes = peak_bytes() // 1_000_000 + 100
    script = [{"do": "allocate", "mb": megabytes}, end]
    timeout = 10.0 if end["do"] == "sleep" else 120.0
    one = stage([message(script)], max_attempts=1, handling_timeout_seconds=timeout)
    one.settled(1)
    (protocol,) = one.records("protocol")
    assert protocol["memory_peak_bytes"] >= megabytes * 1_000_000


def _lines(python: str, code: str) -> list[str]:
    return (
        subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        .stdout.strip()
        .split(" ", 1)
    )


def _children() -> list[int]:
    """Pids of the child processes of this process that run user code."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                parent = int((entry / "stat").read_text().rsplit(") ", 1)[1].split()[1])
            except OSError:
                continue
            if b"kma.handling.child" in command and parent == os.getpid():
                found.append(int(entry.name))
    return found
