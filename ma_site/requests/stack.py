"""Room on the interpreter's stack.

CPython from 3.11 on keeps frames in pieces of 16 KB, or of what one frame asks for. A call that does not fit
maps another piece, and unmaps it on return: 10 µs, again and again where a loop happens to be at such a
depth. Room that is never touched takes no memory.
"""

from collections.abc import Callable
from types import FunctionType
from typing import TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])
# Of 8 bytes: what a frame with room asks for. Nearly as many are left for its calls.
OF_A_REQUEST = 1 << 15
# Holds a request with its room, so that a thread maps nothing for each: that costs 70 µs.
OF_A_THREAD = 1 << 17


def with_room(entry: F, words: int = OF_A_REQUEST) -> F:
    """The function itself; its calls stay in one piece of the stack."""
    function = cast(FunctionType, entry)
    function.__code__ = function.__code__.replace(co_stacksize=words)
    return entry
