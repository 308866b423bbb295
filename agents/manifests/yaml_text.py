"""YAML to plain values and back. Only what a person would write: no aliases, no tags, no key twice."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import yaml
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from console.operations.refusals import NotAllowed, Refused

# -- what is wrong in a file, each with the path of the place ------------------------------------------------


@dataclass(frozen=True, slots=True)
class ManifestProblem:
    """`path`: as in settings/orders/breaker_m; empty for the file as a whole. `forbidden`: a right is
    missing."""

    path: str
    text: str
    forbidden: bool = False

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class Rejected(Exception):
    """Nothing of the file was stored."""

    def __init__(self, problems: list[ManifestProblem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


@contextmanager
def gathered(problems: list[ManifestProblem], path: str) -> Iterator[None]:
    """Makes a refusal inside a problem at that path, or at the field below it."""
    try:
        yield
    except ValidationError as error:
        problems += _from_validation(path, error)
    except Refused as error:
        problems.append(ManifestProblem(path, f"{error.reason} {error.what_to_do}".strip()))
    except NotAllowed as error:
        problems.append(ManifestProblem(path, error.reason, forbidden=True))


def _from_validation(path: str, error: ValidationError) -> Iterator[ManifestProblem]:
    if not hasattr(error, "error_dict"):
        yield ManifestProblem(path, " ".join(error.messages))
        return
    last = path.rsplit("/", 1)[-1]
    for field, texts in error.message_dict.items():
        below = "" if field in (NON_FIELD_ERRORS, last) else f"/{field}"
        yield ManifestProblem(f"{path}{below}", " ".join(texts))


LARGEST_BYTES = 4 * 1024 * 1024


class _Loader(yaml.SafeLoader):
    """Aliases are refused: a few lines of them stand for gigabytes."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # by the stubs
            raise yaml.MarkedYAMLError(problem="aliases are not allowed", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _value in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(problem="a key must be a text", problem_mark=key_node.start_mark)
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {key!r} is there twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


def load(text: bytes) -> Any:
    """Raises Rejected."""
    if len(text) > LARGEST_BYTES:
        raise Rejected([ManifestProblem("", f"the file is larger than {LARGEST_BYTES} bytes")])
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise Rejected([ManifestProblem(place, error.problem or "this is no YAML")]) from error
    except (yaml.YAMLError, ValueError) as error:
        # ValueError: a date or a number that looks like one and is none.
        raise Rejected([ManifestProblem("", str(error).splitlines()[0])]) from error
    except RecursionError as error:
        raise Rejected([ManifestProblem("", "it is nested too deep")]) from error


def dump(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
