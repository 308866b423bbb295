"""Whether two sides gave the same answers."""

from pathlib import Path

# Of these the texts of the evidence are not compared: a list of what stands in the other table.
LEFT_OUT = {"breaker_suggestions": ("evidence",)}
DIGITS = 9


class Different(Exception):
    """Which table, and the first rows that only one side has."""


def compare(product: Path, reference: Path) -> list[str]:
    """The tables that were compared: all that the reference has. Raises Different."""
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    names = sorted(path.stem for path in reference.glob("*.parquet"))
    for name in names:
        connection.execute(f"CREATE VIEW theirs AS FROM '{reference / name}.parquet'")
        connection.execute(f"CREATE VIEW ours AS FROM '{product / name}/*.parquet'")
        columns = connection.execute("SELECT column_name, column_type FROM (DESCRIBE theirs)").fetchall()
        wanted = ", ".join(_rounded(*column) for column in columns if column[0] not in LEFT_OUT.get(name, ()))
        for side, other in (("ours", "theirs"), ("theirs", "ours")):
            only = f"SELECT {wanted} FROM {side} EXCEPT ALL SELECT {wanted} FROM {other}"
            connection.execute(f"CREATE OR REPLACE TEMP TABLE differs AS {only}")
            if left := connection.execute("SELECT count(*) FROM differs").fetchall()[0][0]:
                rows = connection.execute("SELECT CAST(differs AS VARCHAR) FROM differs LIMIT 5").fetchall()
                raise Different(f"{name}: {left} rows only in {side}, like {rows}")
        connection.execute("DROP VIEW theirs; DROP VIEW ours")
    return names


def _rounded(name: str, kind: str) -> str:
    """Of a number with a fraction its first DIGITS digits."""
    if kind == "DOUBLE":
        return f'printf(\'%.{DIGITS}g\', CAST("{name}" AS DOUBLE)) AS "{name}"'
    return (
        f'CAST("{name}" AS BIGINT) AS "{name}"' if kind in ("INTEGER", "BIGINT", "HUGEINT") else f'"{name}"'
    )
