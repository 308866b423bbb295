"""Messages with everything AMQP has."""

from datetime import UTC, datetime

from broker.port import BodyKind, Message
from contract.typed import Typed

SCALARS = (
    Typed("null", None),
    Typed("boolean", True),
    Typed("boolean", False),
    Typed("ubyte", 255),
    Typed("ushort", 65535),
    Typed("uint", 0),
    Typed("uint", 200),
    Typed("uint", 4294967295),
    Typed("ulong", 0),
    Typed("ulong", 18446744073709551615),
    Typed("byte", -128),
    Typed("short", -32768),
    Typed("int", -2147483648),
    Typed("int", 7),
    Typed("long", 9223372036854775807),
    Typed("float", 1.5),
    Typed("float", float("inf")),
    Typed("double", 0.1),
    Typed("double", float("-inf")),
    Typed("decimal32", bytes.fromhex("32800007")),
    Typed("decimal64", bytes.fromhex("31c0000000000007")),
    Typed("decimal128", bytes.fromhex("30400000000000000000000000000007")),
    Typed("char", "Ж"),
    Typed("char", "😀"),
    Typed("timestamp", 1_700_000_000_123),
    Typed("timestamp", -1),
    Typed("timestamp", 2**62),
    Typed("uuid", "39c33909-fe22-4ad2-b188-e0a9d48305b8"),
    Typed("binary", b""),
    Typed("binary", bytes(range(256)) * 2),
    Typed("string", ""),
    Typed("string", "Привет, 世界 \0 NUL"),
    Typed("string", "long " * 100),
    Typed("symbol", "amqp:symbol"),
)
NESTED = (
    Typed("list", ()),
    Typed("list", SCALARS),
    Typed(
        "map",
        ((Typed("string", "a"), Typed("list", (Typed("int", 1),))), (Typed("ulong", 1), Typed("null", None))),
    ),
    Typed("array", (Typed("int", 1), Typed("int", 2))),
    Typed("array", (Typed("string", "a"), Typed("string", "b" * 300))),
    Typed("array", (Typed("boolean", True), Typed("boolean", False))),
    Typed("array", (Typed("list", (Typed("int", 1),)), Typed("list", ()))),
    Typed("array", (Typed("described", (Typed("symbol", "d"), Typed("byte", 1))),)),
    Typed(
        "described", (Typed("symbol", "x:y"), Typed("map", ((Typed("symbol", "k"), Typed("double", 2.5)),)))
    ),
    Typed("described", (Typed("ulong", 4711), Typed("string", "described"))),
)
VALUES = SCALARS + NESTED


def named(values: tuple[Typed, ...]) -> dict[str, Typed]:
    return {f"p{number}-{value.type}": value for number, value in enumerate(values)}


def everything(body: Typed, kind: BodyKind = BodyKind.VALUE) -> Message:
    """Every field set, every scalar type among the properties."""
    return Message(
        body=body,
        body_kind=kind,
        properties=named(SCALARS),
        annotations={"x-opt-test": Typed("list", NESTED[:2])},
        message_id=Typed("uuid", "39c33909-fe22-4ad2-b188-e0a9d48305b8"),
        correlation_id=Typed("binary", b"\x00\x01"),
        to="an.address",
        subject="a kind",
        reply_to="a.reply",
        content_type="text/plain",
        content_encoding="identity",
        group_id="group",
        group_sequence=7,
        reply_to_group_id="other",
        user_id=b"user",
        created_at=datetime(2026, 2, 3, 4, 5, 6, 789000, tzinfo=UTC),
        durable=True,
        priority=9,
    )
