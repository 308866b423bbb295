"""The inverted index as a table of each database; not a model, because no field of Django is one.

PostgreSQL: `words` as tsvector beside the number of the letter, with GIN, which finds the letters of a word;
a table of its own, because every change of a letter's row would write all of its words again. SQLite: FTS5
that keeps neither texts nor positions; its row number is the letter's. It cannot forget a letter without its
words, and need not: numbers of letters are never used again, and whoever asks joins with the letters.
"""

from typing import Any

TABLE = "dlq_words"

POSTGRESQL = (
    f"CREATE TABLE {TABLE} (letter_id bigint PRIMARY KEY, words tsvector NOT NULL)",
    f"CREATE INDEX {TABLE}_of_letters ON {TABLE} USING gin (words)",
    # Words go with their letter, by whatever way it is deleted.
    f"CREATE FUNCTION {TABLE}_forget() RETURNS trigger LANGUAGE plpgsql AS "
    f"$$ BEGIN DELETE FROM {TABLE} WHERE letter_id = OLD.id; RETURN NULL; END $$",
    f"CREATE TRIGGER {TABLE}_forget AFTER DELETE ON dlq_deadletter FOR EACH ROW EXECUTE FUNCTION "
    f"{TABLE}_forget()",
)
NO_POSTGRESQL = (
    f"DROP TRIGGER {TABLE}_forget ON dlq_deadletter",
    f"DROP FUNCTION {TABLE}_forget()",
    f"DROP TABLE {TABLE}",
)
# Words come ready from us (dlq/search/words.py): ASCII only parts them, all other characters are of a word.
SQLITE = (
    f"CREATE VIRTUAL TABLE {TABLE} USING fts5(words, content='', detail=none, columnsize=0, "
    "tokenize=\"ascii tokenchars '_='\")",
)
NO_SQLITE = (f"DROP TABLE {TABLE}",)


def create(apps: Any, editor: Any) -> None:
    _run(editor, POSTGRESQL, SQLITE)


def drop(apps: Any, editor: Any) -> None:
    _run(editor, NO_POSTGRESQL, NO_SQLITE)


def _run(editor: Any, postgresql: tuple[str, ...], sqlite: tuple[str, ...]) -> None:
    for statement in postgresql if editor.connection.vendor == "postgresql" else sqlite:
        editor.execute(statement)
