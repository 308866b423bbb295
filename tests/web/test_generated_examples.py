"""The calls on the generated pages of the REST interface, one for each route, are made as a shell would."""

import json
import re
import shlex
from collections.abc import Iterator

from django.contrib.auth.models import User

from handbook.reference.routes import pages as generated
from tests.web.factories import World
from tests.web.rows import api_client
from tests.web.test_every_route import read_to_the_end

BLOCK = re.compile(r"^```sh\n(.*?)^```", re.DOTALL | re.MULTILINE)


def calls() -> Iterator[tuple[str, str, str | None]]:
    """Method, address and body of each."""
    for page in generated().values():
        for command in BLOCK.findall(page):
            program, *words = shlex.split(command)
            assert program == "curl"
            options = dict(zip(words[:-1:2], words[1:-1:2], strict=True))
            body = options.get("-d")
            method = options.get("-X", "GET" if body is None else "POST")
            yield method, words[-1].removeprefix("$MA"), body


def test_every_generated_call_is_understood(world: World) -> None:
    """Its values are made up, so most are refused: but never for the call, nor for a field that it lacks."""
    client = api_client(User.objects.filter(is_superuser=True)[0])
    client.raise_request_exception = False
    wrong = []
    found = list(calls())
    for method, path, body in found:
        answer = client.generic(method, path, body or "", content_type="application/json")
        read_to_the_end(answer)
        if answer.status_code in (405, 406, 411, 413, 415, 500):
            wrong.append((method, path, answer.status_code, answer.content[:200]))
        if answer.status_code == 400 and body is not None:
            where = answer.json().get("where", "")
            if where and where.partition(".")[0] not in json.loads(body):
                wrong.append((method, path, 400, answer.content[:200]))
    assert not wrong, "\n".join(map(str, wrong))
    assert len(found) > 100
