"""What is wrong in a file, each with the path of the place."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError

from console.operations.refusals import Refused


@dataclass(frozen=True, slots=True)
class Problem:
    """`path`: as in settings/orders/breaker_m; empty for the file as a whole."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class Rejected(Exception):
    """Nothing of the file was stored."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(str(problem) for problem in problems))
        self.problems = problems


@contextmanager
def gathered(problems: list[Problem], path: str) -> Iterator[None]:
    """What is refused inside is a problem at that path, or at the field below it."""
    try:
        yield
    except ValidationError as error:
        problems += _from_validation(path, error)
    except Refused as error:
        problems.append(Problem(path, f"{error.reason} {error.what_to_do}".strip()))


def _from_validation(path: str, error: ValidationError) -> Iterator[Problem]:
    if not hasattr(error, "error_dict"):
        yield Problem(path, " ".join(error.messages))
        return
    last = path.rsplit("/", 1)[-1]
    for field, texts in error.message_dict.items():
        below = "" if field in (NON_FIELD_ERRORS, last) else f"/{field}"
        yield Problem(f"{path}{below}", " ".join(texts))
