"""The form of a pool: whether every agent may run in it, or only those that are listed."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents.pages.previews import EVERY, LISTED, names_of

LONGEST_TEXT = 150_000
CHOICES = [
    (EVERY, gettext_lazy("every agent that its servers offer")),
    (LISTED, gettext_lazy("only the agents that are listed here")),
]


class PoolForm(forms.ModelForm):
    """`allows` and `listed_agents` are the two parts of `Pool.allowed_agents`."""

    allows = forms.ChoiceField(
        label=gettext_lazy("Its settings may run"),
        choices=CHOICES,
        initial=EVERY,
        required=False,
        widget=forms.RadioSelect,
    )
    listed_agents = forms.CharField(
        label=gettext_lazy("Allowed agents"),
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={"rows": 8, "cols": 60, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "One name on each line, as the agents are registered. Without any name nothing may run in this "
            "pool."
        ),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        listed = self.instance.allowlist if self.instance.pk else None
        self.initial.setdefault("allows", EVERY if listed is None else LISTED)
        self.initial.setdefault("listed_agents", "\n".join(map(str, listed or ())))

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        names = names_of(self.cleaned_data.get("listed_agents", ""))
        if "allows" not in self.data or "listed_agents" in self.errors:
            return cleaned  # a form without it says nothing of it
        if self.cleaned_data.get("allows") == LISTED:
            self.instance.allowed_agents = names
        elif names:
            self.add_error(
                "listed_agents",
                _(
                    "This list has no effect while every agent is allowed: choose the other way above, or "
                    "empty it."
                ),
            )
        else:
            self.instance.allowed_agents = None
        return cleaned

    def _post_clean(self) -> None:
        """Shows what is wrong with the list where it was typed."""
        super()._post_clean()  # type: ignore[misc]  # the stubs leave it out
        try:
            self.instance.clean_fields(exclude={"id", "name", "description"})
        except forms.ValidationError as error:
            for problem in error.message_dict.get("allowed_agents", []):
                self.add_error("listed_agents", problem)
