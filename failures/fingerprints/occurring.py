"""Which fingerprints occur in a setting, themselves or through what was merged into them."""

from django.db.models import Exists, OuterRef, Q, QuerySet

from failures.models import FailureGroup, Fingerprint


def in_setting(rows: QuerySet[Fingerprint], key: str) -> QuerySet[Fingerprint]:
    """Two looks into indexes for each row: an OR within one subquery would read all groups of the setting for
    each."""
    groups = FailureGroup.objects.filter(fingerprint=OuterRef("fingerprint"), setting_key=key)
    merged = Fingerprint.objects.filter(Exists(groups), merged_into=OuterRef("pk"))
    return rows.filter(Q(Exists(groups)) | Exists(merged) | Q(part_setting=key))
