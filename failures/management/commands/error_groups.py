"""manage.py error_groups list|known|fixed|not_fixed|merge|split|part_off|join: what people do with them on
their pages, for scripts."""

from typing import Any

from console.operations.command import OperationsCommand
from failures.error_groups.operations import FINGERPRINT_OPERATIONS
from failures.models import Fingerprint


class Command(OperationsCommand):
    help = "Lists error groups, writes notes, marks as fixed, merges and splits. Exit code 1 if refused."
    operations = FINGERPRINT_OPERATIONS

    def as_json(self, row: Fingerprint) -> dict[str, Any]:
        return {
            "fingerprint": row.pk,
            "exception_type": row.exception_type,
            "place": row.place,
            "count": row.count,
            "recent_at": row.recent_at,
            "merged_into": row.merged_into_id,
            "part_of": row.part_of_id,
            "part_setting": row.part_setting,
        }

    def line(self, row: dict[str, Any]) -> str:
        return f"{row['count']:>9}  {row['exception_type']}  {row['place']}".rstrip()
