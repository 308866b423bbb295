"""One declaration per verb: who may do it with what, what it asks for, and what it does; and of each kind
of object how it is found, named and linked.

`perform` is the only way in, for pages, REST and commands. What is refused leaves one audit entry, whoever
asked. What is done leaves one as well: `run` hands `act.record` to where the change is made, which calls
it in the transaction of the change, so that both are there or neither. Killed after the commit, both are
there and nobody was told; asked again, what switches is found done, and what counts is done once more.
Where what follows the commit fails, an entry of the refusal stands beside the first one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from django.db import models
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from broker.port import BrokerError
from console.audit import log as audit
from console.audit import text as words
from console.operations.inputs import Input
from console.operations.refusals import BrokerAway, NotAllowed, Refused
from console.ui.errors import Missing, MissingPermission
from console.ui.page import Text, link, link_to

Obj = TypeVar("Obj", bound=models.Model)


def _of_no_setting(obj: Any) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Resource(Generic[Obj]):
    """`name`: before its id in the audit, and of its pages; `key`: the field that addresses name; `route`: of
    its page; `view`: the permission to see it; `list_page`, `title`: of the list that it is in. `section`: of
    the navigation, and `page`: of the object itself, where they have other names. `query`: names the key in
    the page's query and in what is posted, where no address could hold every key. `setting_key`: of the
    launch setting that it belongs to, for the audit. `visible`: the rows that this person may see, where a
    pool may grant it and `view` is empty; it raises PermissionDenied for who may see none at all."""

    name: str
    rows: Callable[[], QuerySet[Obj]]
    key: str
    route: str
    view: str
    list_page: str
    title: Text
    section: str = ""
    page: str = ""
    query: str = ""
    setting_key: Callable[[Any], str] = _of_no_setting
    label: Callable[[Any], Text] = str
    visible: Callable[[Any], QuerySet[Obj]] | None = None

    def __post_init__(self) -> None:
        words.PAGES.declare({self.name: words.TargetPage(self.page or self.name, query=self.query)})

    def rows_for(self, by: Any) -> QuerySet[Obj]:
        """Those that this person may see; None is the command line, for all. Raises PermissionDenied."""
        if by is not None and self.visible is not None:
            return self.visible(by)
        if by is not None and not by.has_perm(self.view):
            raise MissingPermission(self.view)
        return self.rows()

    def key_of(self, obj: Obj) -> str:
        return str(getattr(obj, self.key))

    def target(self, obj: Obj) -> str:
        return f"{self.name}:{self.key_of(obj)}"

    def url(self, obj: Obj) -> str:
        return link_to(self.page or self.name, self.key_of(obj), self.query)

    def crumbs(self, obj: Obj) -> list[tuple[Text, str]]:
        return [(self.title, link(self.list_page)), (self.label(obj), self.url(obj))]


# Said where nothing was to be done.
UNCHANGED = _(
    "Nothing was changed: the requested state was already set, or someone else changed it at the same time."
)

words.DETAILS.declare(
    {
        "begun": _("execution started"),
        "changed": _("changed"),
        "decided": _("accepted for execution"),
    }
)


class Permission(Protocol):
    def why_not(self, user: Any, obj: Any, /) -> str:
        """Returns which right is missing, for the reader; empty where this person may."""


@dataclass(frozen=True, slots=True)
class ModelPermission:
    """A permission of Django, for every object. `label` is its name for people."""

    name: str
    label: Text

    def why_not(self, user: Any, obj: Any) -> str:
        if user.has_perm(self.name):
            return ""
        text = gettext(
            "You don't have permission to do this. Ask an administrator for the permission “%(permission)s”."
        )
        return Missing(text % {"permission": self.label}, self.name)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Each of these."""

    permissions: Sequence[Permission]

    def why_not(self, user: Any, obj: Any) -> str:
        return next(filter(None, (each.why_not(user, obj) for each in self.permissions)), "")


@dataclass(frozen=True, slots=True)
class Question:
    """Holds what a page asks before it is done. `shown` goes to the template. `refusal`: what asking has
    found. `button`: where the label among other buttons says too little here."""

    title: Text
    texts: Sequence[Text] = ()
    shown: Mapping[str, Any] = field(default_factory=dict)
    refusal: Refused | None = None
    initial: Mapping[str, Any] = field(default_factory=dict)
    button: Text = ""


@dataclass(frozen=True, slots=True)
class Done:
    """Holds what was done, for people. `made`: the row that it made or changed, where REST answers that one.
    `is_gone`: the object is no more; `to_list`: or will be in a moment, and its page is no place to go.
    `then`: the object of the page that follows, where that is another one. `changed`: set by `perform`."""

    message: Text
    made: Any = None
    is_gone: bool = False
    to_list: bool = False
    then: Any = None
    changed: bool = True


class Act:
    """One performance of an operation. `by` is None for the command line, which may do everything."""

    def __init__(
        self, operation: "Operation[Any]", obj: Any, by: Any, now: datetime, inputs: Mapping[str, Any]
    ) -> None:
        self.by, self.now, self.reason = by, now, str(inputs.get("reason") or "")
        self.about = operation.about(obj)
        self.detail = {**operation.detail(obj), **operation.asked_for(inputs)}
        self.is_recorded = False

    def record(self, *, about: Mapping[str, Any] | None = None, **detail: Any) -> None:
        """Records it in the transaction of the change. `about`: columns of the entry that only the change
        makes known."""
        about = {**self.about, **(about or {})}
        told = {**self.detail, **detail, **audit.account_of(self.by)}
        audit.record(**about, by=self.by, now=self.now, reason=self.reason, detail=told)
        self.is_recorded = True


class Operation(Generic[Obj]):
    """`code` is `object.verb`: the audit's, and its verb is the last part of every address. `label` is on
    buttons and in the audit; `icon` a symbol of templates/ma/icons.html, `tone` primary or danger. `quiet`:
    its button among others has no tone. `immediate`: the page asks nothing. `place`: what follows the verb
    in the page's address, and names inputs: `<str:server>/`; `address`: all of that, where it is another.
    `makes`: its object is what it makes; it is given an empty one. The docstring of a subclass describes its
    REST route."""

    code: ClassVar[str]
    on: ClassVar[Resource[Any]]
    permission: ClassVar[Permission]
    label: ClassVar[Text]
    icon: ClassVar[str] = "run"
    tone: ClassVar[str] = "primary"
    quiet: ClassVar[bool] = False
    inputs: ClassVar[Mapping[str, Input]] = {}
    template: ClassVar[str] = "ma/question.html"
    immediate: ClassVar[bool] = False
    place: ClassVar[str] = ""
    address: ClassVar[str] = ""
    makes: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" in vars(cls):
            words.ACTIONS.declare({cls.code: format_lazy("{}: {}", cls.on.title, cls.label)})

    @classmethod
    def verb(cls) -> str:
        return cls.code.rpartition(".")[2]

    def question(self, obj: Obj, by: Any, /, *_args: Any, **named: Any) -> Question:
        """`named`: the inputs that the address names."""
        raise NotImplementedError

    def offered(self, obj: Obj, /) -> bool:
        """Returns whether a page shows its button."""
        return True

    def refusal(self, obj: Obj, now: datetime, /) -> Refused | None:
        """Returns why it cannot be done now, shown beside a button that cannot be pressed. `run` decides
        again, under its locks."""
        return None

    def refusal_to(self, by: Any, obj: Obj, now: datetime, /) -> Refused | None:
        """The same, where it depends on who asks."""
        return self.refusal(obj, now)

    def hidden(self, obj: Obj, /) -> frozenset[str]:
        """Inputs that the page does not offer for this object."""
        return frozenset()

    def run(self, obj: Obj, act: Act, /, *_args: Any, **inputs: Any) -> Done:
        """Opens its own transactions. Raises Refused."""
        raise NotImplementedError

    def detail(self, obj: Obj, /) -> dict[str, Any]:
        """Returns what the name of the object does not say, for the audit."""
        return {}

    def asked_for(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what was asked for, for the audit; a reason has its own place there."""
        told = {name: one.for_audit(inputs.get(name)) for name, one in self.inputs.items()}
        return {name: value for name, value in told.items() if name != "reason" and value not in (None, "")}

    def about(self, obj: Obj, /) -> dict[str, Any]:
        """Names it in the audit."""
        target = f"{self.on.name}:" if self.makes else self.on.target(obj)
        return {"action": self.code, "target": target, "setting_key": self.on.setting_key(obj)}


def check_allowed(operation: type[Operation[Obj]], obj: Obj, by: Any) -> None:
    """Raises NotAllowed, after its audit entry. Outside of every transaction."""
    with audit.attempt(**operation().about(obj), by=by):
        if by is not None and operation.on.view and not by.has_perm(operation.on.view):
            raise NotAllowed(ModelPermission(operation.on.view, operation.on.view).why_not(by, obj))
        if by is not None and (why := operation.permission.why_not(by, obj)):
            raise NotAllowed(why)


def perform(
    operation: type[Operation[Obj]], obj: Obj, by: Any, now: datetime | None = None, **given: Any
) -> Done:
    """Outside of every transaction: what follows a commit belongs to `run`. Raises NotAllowed, Refused (also
    where the broker does not answer), and DoesNotExist where the object is gone."""
    check_allowed(operation, obj, by)
    asked, model = operation(), cast(Any, type(obj))
    inputs = {name: one.default for name, one in operation.inputs.items()} | given
    act = Act(asked, obj, by, now or timezone.now(), inputs)
    try:
        with audit.attempt(**act.about, by=by):
            try:
                done = asked.run(obj, act, **inputs)
            except BrokerError as error:
                raise BrokerAway(error) from error
    except model.DoesNotExist as gone:
        audit.record_refused(**act.about, by=by, why="deleted meanwhile")
        audit.mark_kept(gone)
        raise
    done = replace(done, changed=act.is_recorded)
    if not done.changed:  # somebody asked, and it was so already
        act.record(changed=False)
    return done
