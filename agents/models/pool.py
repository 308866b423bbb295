"""A named set of servers, and the agents that its settings may run."""

from collections.abc import Collection, Iterable
from typing import Any

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from agents.models.parameters import ReadableJSONField, check_storable

# -- which agents the settings of a pool may run: the one declaration of the rule ----------------------------


# Names that a text for people lists.
SHOWN = 10


def allows(allowed: Collection[str] | None, agent: str) -> bool:
    """`allowed`: the list of a pool; None where it has none, so that every agent of its servers may run. An
    empty list allows nothing."""
    return allowed is None or agent in allowed


def refused_by(allowed: Collection[str] | None, agents: Iterable[str]) -> frozenset[str]:
    """Those of these agents that the list does not allow."""
    return frozenset(agent for agent in agents if not allows(allowed, agent))


def join_names(names: Collection[str]) -> str:
    """The first of them for people; empty where there is none."""
    first = sorted(names)[:SHOWN]
    return ", ".join(first) + (", …" if len(names) > SHOWN else "")


pool_name = RegexValidator(
    r"^[a-z0-9][a-z0-9-]{0,59}$", _("Lower-case a–z, 0–9 and hyphens, at most 60 characters.")
)

MOST_ALLOWED_AGENTS = 500
LONGEST_AGENT_NAME = 200  # as LaunchSetting.agent


def check_agent_names(value: Any) -> None:
    """Raises ValidationError. None, for every agent, is not asked here."""
    if not isinstance(value, list) or not all(
        isinstance(name, str) and name and name == name.strip() for name in value
    ):
        raise ValidationError(_("Enter a list of agent names."), code="not_names")
    if len(value) > MOST_ALLOWED_AGENTS:
        raise ValidationError(
            _("The list can have at most %(most)s agents."),
            code="too_many",
            params={"most": MOST_ALLOWED_AGENTS},
        )
    if any(len(name) > LONGEST_AGENT_NAME for name in value):
        raise ValidationError(
            _("An agent name can have at most %(most)s characters."),
            code="too_long",
            params={"most": LONGEST_AGENT_NAME},
        )
    if len(set(value)) < len(value):
        raise ValidationError(_("An agent is listed twice."), code="twice")
    check_storable(value)


class Pool(models.Model):
    name = models.CharField(_("name"), max_length=60, unique=True, validators=[pool_name])
    description = models.TextField(_("description"), blank=True, default="")
    servers = models.ManyToManyField(
        "agents.Server", related_name="pools", blank=True, verbose_name=_("servers")
    )
    # None: every agent that its servers offer. See agents.models.pool.
    allowed_agents = ReadableJSONField(
        _("allowed agents"), null=True, blank=True, default=None, validators=[check_agent_names]
    )

    class Meta:
        verbose_name = _("pool")
        verbose_name_plural = _("pools")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def allowlist(self) -> list[str] | None:
        """None: every agent. What is in the row and is no list allows nothing."""
        stored: Any = self.allowed_agents
        return stored if stored is None or isinstance(stored, list) else []

    def allows(self, agent: str) -> bool:
        return allows(self.allowlist, agent)

    def refusal_of(self, agent: str) -> str:
        """Returns why no setting of this pool may run the agent; empty where one may."""
        if self.allows(agent):
            return ""
        text = gettext("The pool “%(pool)s” does not allow the agent “%(agent)s”.")
        return text % {"pool": self.name, "agent": agent}

    def what_it_allows(self) -> str:
        """Returns what helps after `refusal_of`."""
        text = gettext(
            "Choose an allowed agent (%(names)s), or ask someone who can change pools to allow "
            "the agent that you need."
        )
        return text % {"names": join_names(self.allowlist or ()) or gettext("none yet")}


def agent_problems(setting: Any, stored: Any) -> dict[str, str]:
    """Returns the problems of a launch setting that is to be saved, at the field that brings an agent and a
    pool together that does not allow it. `stored`: as it was, or None. Where both stay as they are, as after
    the list was narrowed, the rest may be edited: it is not sent to its servers anyway."""
    if not setting.agent or setting.pool_id is None:
        return {}
    if stored is not None and (stored.agent, stored.pool_id) == (setting.agent, setting.pool_id):
        return {}
    pool: Pool = setting.pool
    if not (refused := pool.refusal_of(setting.agent)):
        return {}
    moved = stored is not None and stored.agent == setting.agent
    return {"pool" if moved else "agent": f"{refused} {pool.what_it_allows()}"}


# -- rights of a group of people in one pool, beyond their permissions everywhere ----------------------------


class PoolGrant(models.Model):
    pool = models.ForeignKey("agents.Pool", models.CASCADE, related_name="grants", verbose_name=_("pool"))
    group = models.ForeignKey(Group, models.CASCADE, related_name="+", verbose_name=_("user group"))
    may_edit = models.BooleanField(_("edit"), default=False)
    may_enable = models.BooleanField(_("enable"), default=False)
    may_disable = models.BooleanField(_("disable"), default=False)
    may_run = models.BooleanField(_("run now"), default=False)
    may_stop = models.BooleanField(_("stop"), default=False)
    may_answer = models.BooleanField(_("acknowledge deliveries"), default=False)
    may_see_letters = models.BooleanField(_("view dead letters"), default=False)
    may_see_masked = models.BooleanField(_("view masked fields"), default=False)
    may_give_back = models.BooleanField(_("replay"), default=False)
    may_edit_letters = models.BooleanField(_("edit and replay"), default=False)
    may_redirect = models.BooleanField(_("redirect"), default=False)
    may_redirect_elsewhere = models.BooleanField(_("redirect to another destination"), default=False)
    may_discard = models.BooleanField(_("discard"), default=False)
    may_handle_waiting = models.BooleanField(_("manage waiting messages"), default=False)
    may_import_letters = models.BooleanField(_("import messages"), default=False)

    class Meta:
        verbose_name = _("pool permission")
        verbose_name_plural = _("pool permissions")
        ordering = ("pool", "group")
        constraints = [models.UniqueConstraint(fields=["pool", "group"], name="one_grant_per_pool_and_group")]

    def __str__(self) -> str:
        return f"{self.group} @ {self.pool}"
