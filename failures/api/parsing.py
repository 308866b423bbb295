"""Records may hold values that strict JSON has no word for: they must neither stop the spool nor be
rounded."""

import json
import math
from collections.abc import Mapping
from typing import IO, Any

from console.rest.parsing import BoundedJsonParser, NotJson, bounded
from failures.hygiene import DIGITS

# One record that nests too deep is refused by itself, and its spool goes on: so a batch may nest deeper than
# a record.
DEEPEST_BATCH = 300


class RecordParser(BoundedJsonParser):
    """JSON where NaN, Infinity and numbers beyond every column become texts: in properties they are kept so,
    in a field that needs a number that one record is refused. Anything else that is not JSON is refused
    whole."""

    def parse(
        self, stream: IO[Any], media_type: Any = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """As the base; the view learns the size in bytes after unpacking, as `body_size`."""
        data = super().parse(stream, media_type, parser_context)
        if (view := (parser_context or {}).get("view")) is not None:
            view.body_size = self._size
        return data

    def loads(self, raw: bytes) -> Any:
        self._size = len(raw)
        try:
            text = raw.decode("utf-8")
            return bounded(
                json.loads(text, parse_constant=str, parse_int=_whole, parse_float=_real), DEEPEST_BATCH
            )
        except json.JSONDecodeError as error:
            raise NotJson(error.msg, where=f"line {error.lineno}, column {error.colno}") from error
        except (ValueError, RecursionError) as error:
            raise NotJson(str(error) or type(error).__name__) from error


def _whole(text: str) -> int | str:
    return int(text) if len(text) <= DIGITS + 2 else text


def _real(text: str) -> float | str:
    number = float(text)
    return number if math.isfinite(number) else text
