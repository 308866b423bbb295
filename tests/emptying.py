"""What a test that commits leaves behind: rows of Django itself, which its own `flush` deletes and makes
again.

Only tables with rows are emptied. Rows that migrations made go, too, as with `flush`.
"""

from functools import cache

from django.db import connection, transaction
from django.test import TransactionTestCase

KEPT = {"django_migrations", "django_content_type", "auth_permission"}


def install() -> None:
    setattr(TransactionTestCase, "_fixture_teardown", lambda _: remove_rows())  # noqa: B010 (unknown to its types)


def remove_rows() -> None:
    """In one transaction: foreign keys are checked at its end."""
    tables = {name: connection.ops.quote_name(name) for name in _tables()}
    filled = " UNION ALL ".join(
        f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {quoted})" for name, quoted in tables.items()
    )
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(filled)
        names = [tables[name] for (name,) in cursor.fetchall()]
        if connection.vendor == "postgresql" and names:
            # Rows that are deleted keep their room, and with it the plans and sizes that tests look at.
            cursor.execute(f"TRUNCATE {', '.join(names)} CASCADE")
        else:
            for name in names:
                cursor.execute(f"DELETE FROM {name}")


@cache
def _tables() -> list[str]:
    names = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return sorted({*names} - KEPT)
