"""How deep JSON values nest. Nothing here recurses: what it guards against are values that a recursion cannot
read."""

from typing import Any

# Of what anybody sends: nothing of ours nests a tenth as deep, and every reader of it recurses by level.
DEEPEST = 100


def deeper_than(value: Any, most: int) -> bool:
    """Whether lists and mappings are nested in more than `most` levels. A value that is neither has none."""
    level = [value] if isinstance(value, (dict, list)) else []
    depth = 0
    while level:
        depth += 1
        if depth > most:
            return True
        level = [
            each
            for item in level
            for each in (item.values() if isinstance(item, dict) else item)
            if isinstance(each, (dict, list))
        ]
    return False
