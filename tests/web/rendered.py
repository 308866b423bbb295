"""Every page as one person saw it in one language: rendered once in a session, judged by many tests."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from django.test import Client

from tests.web.factories import World
from tests.web.pages import Elements, every_page, signed_in

NOBODY = ""

_known: dict[tuple[str, str], Mapping[str, "Rendered"]] = {}


@dataclass(frozen=True)
class Rendered:
    path: str
    status: int
    headers: Mapping[str, str]
    html: str

    @cached_property
    def elements(self) -> Elements:
        return Elements(self.html)


class Pages:
    """Worlds are made in the same way for each test: what one test has rendered stands for all of them."""

    def __init__(self, world: World) -> None:
        self._world = world

    def of(self, person: str, language: str = "en") -> Mapping[str, Rendered]:
        """By the names of `every_page`. `NOBODY` has not signed in."""
        if (person, language) not in _known:
            headers = {"accept-language": language}
            client = signed_in(self._world, person, headers=headers) if person else Client(headers=headers)
            _known[person, language] = {
                name: _rendered(client, path) for name, path in every_page(self._world).items()
            }
        return _known[person, language]


def _rendered(client: Client, path: str) -> Rendered:
    answer = client.get(path)
    return Rendered(path, answer.status_code, dict(answer.headers), answer.content.decode())
