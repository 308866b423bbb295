"""A kind of object that people do something with: how it is found, named and linked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet

from console.audit import text as words
from console.ui.errors import MissingPermission
from console.ui.page import Text, link, link_to

Obj = TypeVar("Obj", bound=Model)


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
