"""Describes what people do with a kind of failures: write what is known, say that it is fixed, merge and
split."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from console.operations.inputs import ChoiceInput, TextInput
from console.operations.operation import Act, Done, ModelPermission, Operation, Resource
from failures.error_groups import known_errors, merges, splits
from failures.models import Advice, Fingerprint

FINGERPRINTS = Resource(
    name="fingerprint",
    rows=lambda: Fingerprint.objects.select_related("known__changed_by"),
    key="fingerprint",
    query="of",
    route="fingerprint/",
    view="failures.view_fingerprint",
    list_page="fingerprints",
    title=_("Error groups"),
    setting_key=lambda row: row.part_setting,
)
MAY_WRITE = ModelPermission("failures.can_know_errors", _("Can edit known errors"))
MAY_MERGE = ModelPermission("failures.can_merge_fingerprints", _("Can merge and split error groups"))
OTHER = TextInput(_("Other fingerprint"), 64, required=True)


class _OfFingerprint(Operation[Fingerprint]):
    on, immediate = FINGERPRINTS, True


class WriteKnown(_OfFingerprint):
    """Writes the notes of the group and of those merged into it. Replaces existing notes."""

    code, label, permission = "error_group.known", _("Edit notes"), MAY_WRITE
    address = "fingerprint/write/"
    inputs = {
        "cause": TextInput(_("Cause"), 4000, long=True),
        "advice": ChoiceInput(_("Recommended action"), Advice.choices),
        "runbook_url": TextInput(_("Runbook"), 500),
        "owner": TextInput(_("Owner"), 200),
        "ticket": TextInput(_("Ticket"), 200),
    }

    def asked_for(self, inputs: Any) -> dict[str, Any]:
        """The history of the fingerprint has the words."""
        return {}

    @transaction.atomic
    def run(self, row: Fingerprint, act: Act, **known: Any) -> Done:
        if changed := known_errors.write(
            row.pk, known_errors.KnownErrorFields(**known), by=act.by, now=act.now
        ):
            act.record(fields=changed)
        return Done(_("Notes saved. They appear wherever this error group is shown."))


class MarkFixed(_OfFingerprint):
    """Marks the group as fixed; further failures reopen it as returned. Failures of agents older than
    `version` do not count."""

    code, label, permission = "error_group.fixed", _("Mark as fixed"), MAY_WRITE
    inputs = {"version": TextInput(_("Fixed in version (optional)"), 200)}

    @transaction.atomic
    def run(self, row: Fingerprint, act: Act, *, version: str, **inputs: Any) -> Done:
        known_errors.fixed(row.pk, version, by=act.by, now=act.now)
        act.record()
        return Done(_("Marked as fixed. If the error recurs, it is marked as regressed."))


class MarkNotFixed(_OfFingerprint):
    """Removes the mark as fixed."""

    code, label, permission = "error_group.not_fixed", _("Reopen"), MAY_WRITE
    address = "fingerprint/not-fixed/"

    @transaction.atomic
    def run(self, row: Fingerprint, act: Act, **inputs: Any) -> Done:
        known_errors.not_fixed(row.pk, by=act.by, now=act.now)
        act.record()
        return Done(_("Reopened. The error is no longer marked as fixed."))


class MergeFingerprints(_OfFingerprint):
    """Merges `other` into this group; both keep their counts."""

    code, label, permission, inputs = "error_group.merge", _("Merge"), MAY_MERGE, {"other": OTHER}

    @transaction.atomic
    def run(self, row: Fingerprint, act: Act, *, other: str, **inputs: Any) -> Done:
        merges.merge(other, row.pk, by=act.by, now=act.now)
        act.record()
        return Done(_("Merged. Counts stay separate, so you can split the group off at any time."))


class SplitFingerprint(_OfFingerprint):
    """Makes `other` a separate group again."""

    code, label, permission, inputs = "error_group.split", _("Split off"), MAY_MERGE, {"other": OTHER}

    @transaction.atomic
    def run(self, row: Fingerprint, act: Act, *, other: str, **inputs: Any) -> Done:
        merges.split(other, of=row.pk, by=act.by, now=act.now)
        act.record()
        return Done(_("The group is split off. It is a separate error group again."))


class PartOffSetting(_OfFingerprint):
    """Splits the failures of that setting off into a separate group, past and future ones."""

    code, label, permission = "error_group.part_off", _("Split off a setting"), MAY_MERGE
    address = "fingerprint/part-off/"
    inputs = {"setting": TextInput(_("Setting"), 200, required=True)}

    def asked_for(self, inputs: Any) -> dict[str, Any]:
        return {"in_setting": inputs["setting"]}

    @transaction.atomic
    def run(self, row: Fingerprint, act: Act, *, setting: str, **inputs: Any) -> Done:
        splits.part_off(row.pk, setting, by=act.by, now=act.now)
        act.record()
        return Done(
            _(
                "Split off. New failures of this setting go to the separate group. You can rejoin the "
                "setting at any time."
            )
        )


class JoinPart(_OfFingerprint):
    """Rejoins a group that was split off for its setting."""

    code, label, permission = "error_group.join", _("Rejoin"), MAY_MERGE

    @transaction.atomic
    def run(self, row: Fingerprint, act: Act, **inputs: Any) -> Done:
        whole = splits.join(row.pk, by=act.by, now=act.now)
        act.record()
        done = _("Rejoined. The original group's counts include this setting's failures again.")
        return Done(done, then=Fingerprint(fingerprint=whole))


FINGERPRINT_OPERATIONS: tuple[type[Operation[Fingerprint]], ...] = (
    WriteKnown,
    MarkFixed,
    MarkNotFixed,
    MergeFingerprints,
    SplitFingerprint,
    PartOffSetting,
    JoinPart,
)
