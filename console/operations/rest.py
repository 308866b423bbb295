"""Routes of operations: POST …/<verb>/ of the object."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from django.core.exceptions import ObjectDoesNotExist
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from console.audit.refusals import Audited
from console.operations.operation import Done, Operation, check_allowed, perform
from console.operations.refusals import BrokerAway, NotAllowed, Refused, WronglyAsked
from console.rest.commands import EXTENSION
from console.rest.errors import ApiProblem, BrokerProblem, Conflict, Forbidden
from console.rest.serializers import BodySerializer, check_no_body

# What a refusal is where it is no conflict with the present state.
PROBLEMS: dict[type[Refused], type[ApiProblem]] = {WronglyAsked: ApiProblem, BrokerAway: BrokerProblem}


@dataclass(frozen=True, slots=True)
class Answer:
    """Holds what a route answers: the row that was made (`Done.made`) in this serializer. `or_nothing`: 204
    where none was; without a serializer always."""

    serializer: type[serializers.BaseSerializer[Any]] | None = None
    status: int = status.HTTP_200_OK
    or_nothing: bool = False

    @property
    def responses(self) -> dict[int, Any]:
        made = {self.status: self.serializer} if self.serializer else {}
        return made if made and not self.or_nothing else {**made, status.HTTP_204_NO_CONTENT: None}


def performing(*operations: type[Operation[Any]]) -> dict[str, Any]:
    """Extension of the description of a route that performs one of these, for programs."""
    return performing_by({operation.code: {} for operation in operations})


def performing_by(said: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The same where the body decides: what it says for each, by the code of the audit."""
    return {EXTENSION: {code: dict(body) for code, body in said.items()}}


class OperationsMixin(Audited):
    """`operations`: what a route answers for each; None: the object as it is now. One that makes its object
    is the POST to the list. `addition`: what that performs in the view's own `create`, `removal`: what DELETE
    performs in its `destroy`."""

    operations: ClassVar[Mapping[type[Operation[Any]], Answer | None]] = {}
    addition: ClassVar[type[Operation[Any]] | None] = None
    removal: ClassVar[type[Operation[Any]] | None] = None
    action_permissions: ClassVar[dict[str, tuple[str, ...]]] = {}
    serializer_class: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.action_permissions = dict(cls.action_permissions)
        for operation, answer in cls.__dict__.get("operations", {}).items():
            name = _name_of(operation)
            if hasattr(cls, name):
                raise TypeError(f"{cls.__name__} has a {name} already")
            setattr(cls, name, _route_of(operation, answer, cls.serializer_class))
            cls.action_permissions[name] = (operation.on.view,) if operation.on.view else ()

    def handle_exception(self, exc: Exception) -> Response:
        """Who may not even see it, or names what is not there, is in the audit too."""
        own: dict[str, Any] = {"create": self.addition, "destroy": self.removal}
        of_names = own | {_name_of(each): each for each in self.operations}
        if operation := of_names.get(getattr(self, "action", None) or ""):
            self.audit_action = operation.code
        if not self.audit_action:
            return super(Audited, self).handle_exception(exc)
        return super().handle_exception(exc)


def _name_of(operation: type[Operation[Any]]) -> str:
    """Returns the name of the view's method."""
    return "create" if operation.makes else operation.verb()


def _route_of(operation: type[Operation[Any]], answer: Answer | None, of_object: Any) -> Any:
    on = operation.on
    body = _body_of(operation)  # type: ignore[arg-type]  # a class can be hashed

    def route(self: Any, request: Request, **lookup: Any) -> Response:
        obj = on.rows().model() if operation.makes else self.get_object()
        where = f"{on.name.replace('_', '-')}s" + ("" if operation.makes else f"/{on.key_of(obj)}")
        with forbidding(where):
            check_allowed(operation, obj, request.user)
        if body is None:
            check_no_body(request)
            given: dict[str, Any] = {}
        else:
            read = body(data=request.data)
            read.is_valid(raise_exception=True)
            given = read.validated_data
        with as_problems(where):
            done = perform(operation, obj, request.user, **given)
        return _answered(self, answer, done)

    route.__name__, route.__doc__ = _name_of(operation), operation.__doc__
    responses = answer.responses if answer else {status.HTTP_200_OK: of_object}
    made: Any = route
    if not operation.makes:
        path = operation.verb().replace("_", "-")
        made = action(detail=True, methods=["post"], url_path=path, url_name=path)(route)
    return extend_schema(request=body, responses=responses, extensions=performing(operation))(made)


def _answered(view: Any, answer: Answer | None, done: Done) -> Response:
    if answer is None:
        return Response(view.get_serializer(view.get_object()).data)
    if done.made is None or answer.serializer is None:
        return Response(status=status.HTTP_204_NO_CONTENT)
    context = view.get_serializer_context()
    return Response(answer.serializer(done.made, context=context).data, status=answer.status)


@cache
def _body_of(operation: Any) -> type[BodySerializer] | None:
    if not operation.inputs:
        return None
    fields = {name: one.rest_field() for name, one in operation.inputs.items()}
    return type(f"{operation.__name__}Serializer", (BodySerializer,), fields)


@contextmanager
def as_problems(where: str) -> Iterator[None]:
    """A refusal is 409 with its reason and what helps (400 where it is wrongly asked for, 503 where the
    broker is away), a missing right 403; what was deleted meanwhile is not found."""
    try:
        with forbidding(where):
            yield
    except ObjectDoesNotExist as gone:
        raise exceptions.NotFound from gone
    except Refused as refused:
        told = {"code": refused.code, "what_to_do": refused.what_to_do, **refused.more}
        raise PROBLEMS.get(type(refused), Conflict)(refused.reason, where=where, **told) from refused


@contextmanager
def forbidding(where: str) -> Iterator[None]:
    try:
        yield
    except NotAllowed as denied:
        what_to_do = _("Ask an administrator for this permission.")
        raise Forbidden(denied.reason, where=where, what_to_do=what_to_do) from denied
