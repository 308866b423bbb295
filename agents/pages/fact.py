"""A field of a setting as a page tells it: its value, and what follows from it."""

from dataclasses import dataclass

from agents.pages.consoles import Text


@dataclass(frozen=True, slots=True)
class Fact:
    """`follows` is the consequence of the value; `warns` when somebody should think about it."""

    name: Text
    value: Text
    follows: Text = ""
    warns: bool = False
    code: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    title: Text
    facts: list[Fact]
