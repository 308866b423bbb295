"""`./ma --url`: to whom it speaks, what it sends and shows, how it ends; against servers that are no MA, and
in processes of its own."""

import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deploy import cli
from deploy.config import REPOSITORY
from deploy.remote import cli as remote
from deploy.remote import output
from deploy.remote import site as sites
from deploy.remote.site import Exit, RemoteError, site_at
from tests.tls import Authority

TOKEN = "ma_secret-of-a-person"
COMMANDS = {
    "version": 1,
    "commands": [
        {
            "noun": "settings",
            "verb": "list",
            "method": "GET",
            "path": "/api/v1/settings/",
            "about": "All of 100 %.",
            "operation": "",
            "inputs": [],
            "fixed": {},
            "answer": "list",
        }
    ],
}
Answers = Callable[[str], tuple[int, dict[str, str], bytes]]


def as_json(value: Any, status: int = 200) -> tuple[int, dict[str, str], bytes]:
    return status, {"Content-Type": "application/json"}, json.dumps(value).encode()


def an_ma(path: str) -> tuple[int, dict[str, str], bytes]:
    if path.startswith("/api/v1/commands/"):
        return as_json(COMMANDS)
    return as_json({"results": [{"key": "orders", "enabled": True, "note": None}], "next": None})


@dataclass
class Listener:
    port: int
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def tokens(self) -> set[str]:
        return {headers.get("Authorization", "") for _path, headers in self.asked}


@contextmanager
def listening(answers: Answers, tls: tuple[Path, Path] | None = None) -> Iterator[Listener]:
    found = Listener(0)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found.asked.append((self.path, dict(self.headers.items())))
            status, headers, body = answers(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    found.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(*words: str, token: str = TOKEN) -> int:
    try:
        return remote.main(words, {"MA_TOKEN": token}, cli.LOCAL)
    except SystemExit as ended:
        return int(ended.code or 0)


# -- whom it is meant for ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "environ", "meant"),
    [
        (["settings", "list"], {}, False),
        (["settings", "list"], {"MA_URL": "https://ma"}, True),
        (["apply", "x.yaml"], {"MA_URL": "https://ma"}, True),
        (["status"], {"MA_URL": "https://ma"}, False),
        (["manage", "apply", "x.yaml"], {"MA_URL": "https://ma"}, False),
        (["--help"], {"MA_URL": "https://ma"}, False),
        (["--url", "https://ma", "status"], {}, True),
        (["--url=https://ma", "settings"], {}, True),
        (["--ca", "x", "settings"], {}, True),
        (["completion", "bash"], {}, True),
        ([], {"MA_URL": "https://ma"}, False),
    ],
)
def test_commands_of_this_installation_stay_its_own(
    given: list[str], environ: dict[str, str], meant: bool
) -> None:
    assert remote.is_meant(given, environ, cli.LOCAL) == meant


@pytest.mark.process
def test_every_command_of_the_installation_is_known_as_local() -> None:
    usage = subprocess.run(
        [sys.executable, str(REPOSITORY / "ma"), "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={"MA_URL": "https://127.0.0.1:1"},
    ).stdout
    listed = [line.split()[0] for line in usage.splitlines() if line.startswith("    ") and line[4] != " "]
    assert len(listed) > 8 and set(listed) == set(cli.LOCAL)


# -- to whom the token goes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["", "ma.example", "ftp://ma.example", "https://", "https://u:p@ma.example", "https://ma.example?x=1",
     "https://ma.example:x", "https://ma.example:0", "https://ma.example/#x", "https://[::1"],
)  # fmt: skip
def test_what_is_no_address_is_a_usage_error(url: str) -> None:
    with pytest.raises(RemoteError) as error:
        site_at(url, TOKEN)
    assert error.value.code == Exit.USAGE and TOKEN not in str(error.value)


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://ma.example", False),
        ("http://10.0.0.1:8000", False),
        ("http://localhost.example", False),
        ("http://127.0.0.1.example", False),
        ("http://127.0.0.1:8000", True),
        ("http://127.8.9.1", True),
        ("http://[::1]:8000", True),
        ("http://localhost:8000/", True),
        ("https://ma.example/site/", True),
    ],
)
def test_plain_http_goes_to_this_machine_alone_unless_told(url: str, allowed: bool) -> None:
    assert site_at(url, TOKEN, plain=True).base == url.rstrip("/")
    if allowed:
        site_at(url, TOKEN)
        return
    with pytest.raises(RemoteError, match="unencrypted") as error:
        site_at(url, TOKEN)
    assert error.value.code == Exit.USAGE and "--allow-plain-http" in error.value.what_to_do


def test_the_token_is_shown_nowhere() -> None:
    assert TOKEN not in repr(site_at("https://ma.example", TOKEN))
    for token in ("ma_a b", "ma_a\nX: y", "ma_ä"):
        with pytest.raises(RemoteError) as error:
            site_at("https://ma.example", token)
        assert token not in str(error.value) + error.value.what_to_do


@pytest.mark.process
def test_no_redirect_is_followed(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(an_ma) as other:
        there = f"http://127.0.0.1:{other.port}/api/v1/settings/"
        with listening(lambda _path: (302, {"Location": there}, b"")) as listener:
            assert run("--url", f"http://127.0.0.1:{listener.port}", "settings", "list") == Exit.REFUSED
        assert other.asked == []
    assert f"redirects to http://127.0.0.1:{other.port}" in capsys.readouterr().err


@pytest.mark.process
def test_a_proxy_of_the_environment_gets_nothing_that_stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    with listening(an_ma) as proxy, listening(an_ma) as listener:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        assert run("--url", f"http://127.0.0.1:{listener.port}", "settings", "list") == 0
        assert proxy.asked == [] and listener.tokens == {f"Bearer {TOKEN}"}


@pytest.mark.process
def test_tls_is_verified_by_the_authority_that_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ours, other = Authority.create(tmp_path / "ours"), Authority.create(tmp_path / "other")
    named, misnamed = ours.sign("ma", "IP:127.0.0.1"), ours.sign("else", "DNS:ma.example")
    with listening(an_ma, named) as listener:
        url = f"https://127.0.0.1:{listener.port}"
        assert run("--url", url, "--ca", str(ours.certificate), "settings", "list") == 0
        for trusted in ([], ["--ca", str(other.certificate)]):
            assert run("--url", url, *trusted, "settings", "list") == Exit.AWAY
            error = capsys.readouterr().err
            assert "is not trusted" in error and "--ca FILE" in error
        assert listener.tokens == {f"Bearer {TOKEN}"}
        for wrong in (tmp_path / "none", Path(__file__)):
            assert run("--url", url, "--ca", str(wrong), "settings", "list") == Exit.USAGE
    with listening(an_ma, misnamed) as listener:
        url = f"https://127.0.0.1:{listener.port}"
        assert run("--url", url, "--ca", str(ours.certificate), "settings", "list") == Exit.AWAY
        assert "use a name that it contains" in capsys.readouterr().err
        assert listener.asked == []
    with listening(an_ma, ours.sign("over", "IP:127.0.0.1", days=-1)) as listener:
        url = f"https://127.0.0.1:{listener.port}"
        assert run("--url", url, "--ca", str(ours.certificate), "settings", "list") == Exit.AWAY
        assert "renew it there" in capsys.readouterr().err


# -- how it ends ---------------------------------------------------------------------------------------------


@pytest.mark.process
@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        (
            as_json({"detail": "It is enabled.", "what_to_do": "Disable it."}, 409),
            Exit.REFUSED,
            "Disable it.",
        ),
        (as_json({"detail": "No right.", "where": "settings/x"}, 403), Exit.REFUSED, "(settings/x)"),
        (as_json({"detail": "Too often."}, 429), Exit.AWAY, "Too often."),
        (as_json({"detail": "The broker is away."}, 503), Exit.AWAY, "broker"),
        ((502, {}, b"<html>bad\x1b[31m gateway"), Exit.AWAY, "502, but not as an MA: <html>bad"),
        ((404, {}, b"not here"), Exit.REFUSED, "404"),
        ((200, {}, b"no json"), Exit.REFUSED, "no json"),
        (as_json({"version": 2, "commands": []}), Exit.REFUSED, "version 2"),
        (
            as_json({"error": "not_found", "detail": "No such address."}, 404),
            Exit.REFUSED,
            "Upgrade the site.",
        ),
    ],
    ids=str,
)
def test_what_an_answer_is_decides_how_it_ends(
    answer: tuple[int, dict[str, str], bytes],
    code: Exit,
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with listening(lambda _path: answer) as listener:
        assert run("--url", f"http://127.0.0.1:{listener.port}", "settings", "list") == code
    told = capsys.readouterr()
    assert said in told.err and told.err.startswith("ma: ") and "\x1b" not in told.err and told.out == ""


@pytest.mark.process
def test_who_does_not_answer_is_away(capsys: pytest.CaptureFixture[str]) -> None:
    with listening(an_ma) as listener:
        port = listener.port
    assert run("--url", f"http://127.0.0.1:{port}", "settings", "list") == Exit.AWAY
    assert "does not answer" in capsys.readouterr().err


@pytest.mark.process
def test_an_answer_without_end_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sites, "MOST_BYTES", 100)
    with listening(lambda _path: (200, {}, b"x" * 200)) as listener:
        assert run("--url", f"http://127.0.0.1:{listener.port}", "settings", "list") == Exit.REFUSED
    assert "larger than 100 bytes" in capsys.readouterr().err


# -- what it shows -------------------------------------------------------------------------------------------


def test_a_table_has_the_columns_that_tell_something_and_fit() -> None:
    rows = [
        {"key": "a", "on": True, "none": None, "parts": [1], "text": "x" * 60},
        {"key": "bb", "on": False, "none": None, "parts": [], "text": ""},
    ]
    head, first, second = output.rows_as_table(rows).splitlines()
    assert head.split() == ["key", "on", "text"]
    assert first.split() == ["a", "yes", "x" * 47 + "…"] and second.split() == ["bb", "no"]
    assert output.rows_as_table(rows, ["parts", "key"]).splitlines()[1].split() == ["[1]", "a"]
    wide = [{f"column-{number}": "x" * 30 for number in range(20)}]
    assert max(map(len, output.rows_as_table(wide).splitlines())) <= output.WIDE
    assert output.rows_as_table([]) == "" and output.object_as_lines({"x": None}) == ""
    assert output.object_as_lines({"a": 1, "list": [1], "no": False}).split() == [
        "a",
        "1",
        "list",
        "[1]",
        "no",
        "no",
    ]


@pytest.mark.process
def test_the_completion_is_a_function_that_bash_takes() -> None:
    script = f"{remote.COMPLETION}\ncomplete -p ma"
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "_ma" in done.stdout


@pytest.mark.process
def test_bash_completes_what_the_site_declares() -> None:
    script = """
    eval "$(./ma completion bash)"
    COMP_WORDS=(./ma settings l) COMP_CWORD=2; _ma; echo "${COMPREPLY[*]}"
    COMP_WORDS=(./ma stat) COMP_CWORD=1; _ma; echo "${COMPREPLY[*]}"
    COMP_WORDS=(./ma "") COMP_CWORD=1; _ma; printf "%s " "${COMPREPLY[@]}"
    """
    with listening(an_ma) as listener:
        environ = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "MA_URL": f"http://127.0.0.1:{listener.port}",
        }
        done = subprocess.run(
            ["bash", "-euc", script], cwd=REPOSITORY, env=environ, capture_output=True, text=True, check=False
        )
    first, second, third = done.stdout.splitlines()
    assert (first, second) == ("list", "status") and {"settings", "plan", "up"} <= set(third.split())


# -- in a process of its own ---------------------------------------------------------------------------------


def ma(*words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-E", str(REPOSITORY / "ma"), *words],
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.process
def test_nothing_of_the_site_is_imported() -> None:
    program = (
        "import sys; from deploy.remote import cli; "
        "print(sorted({name.partition('.')[0] for name in sys.modules} & "
        "{'django', 'rest_framework', 'requests', 'yaml', 'agents', 'console', 'contract'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.process
def test_a_token_of_the_environment_is_not_in_the_list_of_processes(tmp_path: Path) -> None:
    """Of the process itself, and of those that it starts: none."""
    waiting, seen = threading.Event(), list[str]()

    def slow(path: str) -> tuple[int, dict[str, str], bytes]:
        if not seen:
            seen.extend(
                file.read_bytes().decode(errors="replace")
                for file in Path("/proc").glob("[0-9]*/cmdline")
                if file.exists()
            )
            waiting.set()
        return an_ma(path)

    with listening(slow) as listener:
        done = ma("settings", "list", MA_URL=f"http://127.0.0.1:{listener.port}", MA_TOKEN=TOKEN)
    assert done.returncode == 0 and waiting.is_set(), done.stderr
    assert any("settings" in line and "list" in line for line in seen)
    assert not any(TOKEN in line for line in seen)
    assert listener.tokens == {f"Bearer {TOKEN}"} and TOKEN not in done.stdout + done.stderr


@pytest.mark.process
def test_the_script_dispatches_by_address_and_ends_with_the_code() -> None:
    with listening(an_ma) as listener:
        url = f"http://127.0.0.1:{listener.port}"
        by_option = ma("--url", url, "--token", TOKEN, "settings", "list", "--json")
        by_environment = ma("settings", "list", MA_URL=url, MA_TOKEN=TOKEN)
        unknown = ma("setings", "list", MA_URL=url, MA_TOKEN=TOKEN)
        usage = ma("settings", "lost", MA_URL=url, MA_TOKEN=TOKEN)
    assert json.loads(by_option.stdout)["results"][0]["key"] == "orders"
    assert by_environment.stdout.splitlines() == ["key     enabled", "orders  yes"]
    assert (unknown.returncode, usage.returncode) == (64, 64)
    assert ma("settings", "list").returncode == 2, "without an address it is a command of this installation"
