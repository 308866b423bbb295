"""Registers the pages and panels of this app."""

from typing import Any

from django.utils.translation import gettext_lazy as _

from agents.services.rights import may_anywhere
from console.ui import panels
from console.ui.page import Tab, add_tab
from dlq import rights
from dlq.pages import (
    audit,
    case,
    foreign,
    giveback,
    groups,
    letter,
    letters,
    overview,
    remarks,
    replay,
    replay_control,
    replay_rights,
    replays,
    saved_filters,
    whole,
)
from dlq.pages.audited import add_page
from dlq.pages.panels import setting_panel
from dlq.pages.trip_panel import takers_of_trips, trip_panel


def register() -> None:
    add_tab(Tab("dead_letters", _("Dead letters"), "admin:dead_letters", 50, allowed=_may_see))
    add_tab(Tab("replays", _("Replays"), "admin:replays", 70, replay_rights.VIEW))
    add_tab(Tab("audit", _("Audit"), "admin:audit", 75, audit.VIEW))
    add_page("dead-letters/", overview.overview, "dead_letters")
    add_page("letters/", letters.all_letters, "all_dead_letters")
    add_page("letters/groups/", groups.all_groups, "all_letter_groups")
    add_page("saved-filters/", saved_filters.saved_filters, "saved_filters")
    add_page("saved-filters/save/", saved_filters.save_page, "saved_filter_save")
    add_page("saved-filters/<int:pk>/change/", saved_filters.change_page, "saved_filter_change")
    add_page("saved-filters/<int:pk>/delete/", saved_filters.delete_page, "saved_filter_delete")
    add_page("dead-letters/<str:key>/", letters.letter_list, "dead_letters_of")
    add_page("dead-letters/<str:key>/groups/", groups.groups_of_setting, "letter_groups")
    add_page("dead-letters/<str:key>/give-back/", giveback.give_back_page, "give_back")
    add_page("dead-letters/<str:key>/redirect/", giveback.redirect_page, "redirect")
    add_page("dead-letters/<str:key>/discard/", giveback.discard_page, "discard")
    add_page("foreign-queues/", foreign.foreign_page, "foreign_queues")
    add_page("foreign-queues/<int:pk>/forget/", foreign.forget_page, "forget_foreign_queue")
    add_page("letters/<int:pk>/", letter.letter_page, "letter")
    add_page("letters/<int:pk>/whole/", whole.whole_page, "whole_letter")
    add_page("letters/<int:pk>/whole/cancel/", whole.cancel_page, "cancel_whole_letter")
    add_page("letters/<int:pk>/whole/body/", whole.whole_body, "whole_body")
    add_page("letters/<int:pk>/body/", letter.letter_body, "letter_body")
    add_page("cases/", case.case_page, "case")
    add_page("remarks/note/", remarks.note_page, "note")
    add_page("remarks/mute/", remarks.mute_page, "mute")
    add_page("remarks/take/", remarks.take_page, "take")
    add_page("remarks/faults/<int:pk>/end/", remarks.end_fault_page, "fault_end")
    add_page("remarks/takings/<int:pk>/end/", remarks.end_taking_page, "taking_end")
    add_page("remarks/takings/<int:pk>/hand-over/", remarks.hand_over_page, "taking_hand_over")
    add_page("replays/", replays.replay_list, "replays")
    add_page("replays/<uuid:pk>/", replay.replay_page, "replay")
    for name in ("pause", "resume", "cancel", "approve", "refuse"):
        add_page(f"replays/<uuid:pk>/{name}/", getattr(replay_control, f"{name}_page"), f"replay_{name}")
    add_page("audit/", audit.audit_page, "audit")
    panels.register("setting", 20, setting_panel)
    panels.register("trip", 20, trip_panel)
    panels.register_takers(takers_of_trips)


def _may_see(user: Any) -> bool:
    return may_anywhere(user, rights.SEE)
