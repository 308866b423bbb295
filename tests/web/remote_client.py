"""The remote command in the process of the tests: its requests reach the site without a network."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from console.models import ApiToken
from deploy import cli as local_cli
from deploy.remote import cli

URL = "http://127.0.0.1:1"


class Answer(BytesIO):
    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(body)
        self.status = status


class Bridge:
    """Takes the place of an opener of urllib."""

    def open(self, request: Request, timeout: float) -> Answer:
        parts = urlsplit(request.full_url)
        headers = {name.lower(): value for name, value in request.header_items()}
        address = parts.path + (f"?{parts.query}" if parts.query else "")
        answer: Any = Client().generic(
            request.get_method(),
            address,
            request.data or b"",
            content_type=headers.get("content-type", "application/octet-stream"),
            headers={name: value for name, value in headers.items() if name == "authorization"},
        )
        body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        if answer.status_code >= 400:
            raise HTTPError(request.full_url, answer.status_code, "", {}, BytesIO(body))  # type: ignore[arg-type]  # headers are not asked
        return Answer(answer.status_code, body)


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class RemoteClient:
    """`./ma --url …` as one person."""

    def __init__(self, who: User, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("deploy.remote.site.build_opener", lambda *_handlers: Bridge())
        token = ApiToken.issue(who, "test", now=timezone.now())
        self.environ = {"MA_URL": URL, "MA_TOKEN": token}

    def __call__(self, *words: str) -> Ran:
        out, err = TextIOWrapper(BytesIO(), encoding="utf-8", newline=""), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                code = cli.main(words, self.environ, local_cli.LOCAL)
            except SystemExit as ended:
                code = int(ended.code or 0)
            out.flush()
        assert isinstance(out.buffer, BytesIO)
        return Ran(code, out.buffer.getvalue().decode("utf-8", "replace"), err.getvalue())


# -- a request as the words of a command ---------------------------------------------------------------------


def command_for(
    commands: Sequence[Mapping[str, Any]], method: str, path: str, said: Mapping[str, Any] = {}
) -> Mapping[str, Any]:
    """The only one that sends this."""
    found = [each for each in commands if (each["method"], each["path"]) == (method, path)]
    (one,) = (each for each in found if each["fixed"].items() <= said.items())
    return one


def words_for(command: Mapping[str, Any], of: Sequence[object], said: Mapping[str, Any]) -> list[str]:
    """`of`: the places of its address, in their order."""
    words = [command["noun"], command["verb"], *map(str, of)]
    known = {each["name"]: each for each in command["inputs"] if each["place"] != "path"}
    for name, value in said.items():
        if name not in command["fixed"]:
            words += _option(known[name], value)
    return words


def _option(each: Mapping[str, Any], value: Any) -> Iterator[str]:
    name = each["name"].replace("_", "-")
    if each["type"] == "boolean":
        yield f"--{name}" if value else f"--no-{name}"
    elif each["type"] == "json":
        yield from (f"--{name}", json.dumps(value))
    elif each["several"]:
        yield from (f"--{name}", *map(str, value))
    else:
        yield f"--{name}={value}"


def looks(
    commands: Sequence[Mapping[str, Any]], address: str
) -> Iterator[tuple[Mapping[str, Any], list[str]]]:
    """The command that only looks there, with what the address names in its places."""
    gets = [each for each in commands if each["method"] == "GET"]
    for command in [each for each in gets if each["path"] == address] or gets:
        if found := re.fullmatch(re.sub(r"\{\w+\}", "([^/]+)", command["path"]), address):
            yield command, list(found.groups())
