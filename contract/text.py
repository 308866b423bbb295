"""Text that every store takes: failure texts and property values come from hostile places."""

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
MARK = 100  # characters that `head_and_tail` may add


def storable(text: str) -> str:
    """`text` without what PostgreSQL or UTF-8 refuse: NUL becomes U+2400, a lone surrogate U+FFFD."""
    if text.isascii() and "\0" not in text:
        return text
    return (
        text.replace("\0", "\N{SYMBOL FOR NULL}")
        .encode("utf-16", "surrogatepass")
        .decode("utf-16", "replace")
    )


def head_and_tail(text: str, limit: int) -> str:
    """`text`, or when it is longer than `limit` characters its first third and last two thirds with a plain
    mark."""
    if len(text) <= limit:
        return text
    head = limit // 3
    tail = limit - head
    return f"{text[:head]}\n… {len(text) - limit} characters left out …\n{text[-tail:]}"
