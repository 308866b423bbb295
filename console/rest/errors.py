"""Every error of the API has the same body: error (a stable word), detail, where, what_to_do, and the id of
the request, which the lines of the log have."""

from typing import Any

import structlog
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import DatabaseError, InterfaceError
from django.http import Http404, HttpRequest, JsonResponse
from rest_framework import exceptions, status
from rest_framework.response import Response

from broker.port import BrokerError
from console.reasons import BROKER_AWAY
from console.ui.errors import missing_in_english, request_id
from contract.wire import ContractError, UnsupportedVersion

log = structlog.get_logger(__name__)

HINTS = {
    "not_authenticated": (
        "Send the header Authorization: Bearer TOKEN (./ma manage create_api_token USER prints one)."
    ),
    "authentication_failed": "Use a valid token: ./ma manage create_api_token USER, for a KMA create_server.",
    "permission_denied": "Ask an administrator for this permission.",
    "not_found": "Check the list of this resource, or see /api/v1/docs/.",
    "method_not_allowed": "See /api/v1/docs/ for the methods of this route.",
    "throttled": "Wait, then send requests less often.",
    "unsupported_media_type": "Send Content-Type: application/json.",
    "invalid": "Correct the field and send it again.",
    "parse_error": "Send a JSON object in UTF-8.",
    # Refusals of services, by their code, where the refusal itself says no more.
    "bad_filter": "Correct the filter; GET the list with it to see its results.",
    "bad_options": "Correct the options: see /api/v1/docs/.",
    "bad_pointer": "Send a JSON pointer to a value in the body, for example /order/lines/0/sum.",
    "empty": "Send a non-empty text.",
    "broker_away": "Nothing was changed. Try again later.",
    "ended": "No action is needed: read it again to see the result.",
    "exists": "No action is needed: it exists already.",
    "no_destination": "Choose a setting of a message agent.",
    "no_json": "Choose messages whose body is JSON, or set properties only.",
    "no_name": "Send a name.",
    "no_person": "Name a user who may see these dead letters.",
    "no_reason": "Send a reason.",
    "reason_needed": "Send a reason.",
    "nothing": "Read the list again: the messages were processed or moved in the meantime.",
    "nothing_named": "Send the subject: a setting or a trip.",
    "nothing_to_give_back": "Read the list again and choose messages in the state dead.",
    "nobody": "Request the job again as an existing user.",
    "no_target": "Send the setting that receives the messages.",
    "open": "Wait until it ends, or cancel it.",
    "other_state": "Read the job again: its state says what is possible.",
    "outstanding": "Wait for the outcome of the replay that contains them.",
    "over": "No action is needed: read it again to see the result.",
    "own_request": "Ask another user with the permission to decide.",
    "pointer_missing": "Send a pointer to a value that exists in the body.",
    "same": "No action is needed.",
    "selection": "Choose fewer messages, or at least one.",
    "too_many": "Choose fewer messages, for example with a shorter time span.",
    "truncated": "Fetch the whole message first, or choose others.",
    "unchanged": "No action is needed: nothing differs. Change something, or cancel.",
    "unreadable": "Send the changes in the format of /api/v1/docs/.",
}
# For whatever has no hint of its own: an answer without advice leaves people with the problem.
GENERAL_HINTS = {
    status.HTTP_400_BAD_REQUEST: "Correct the request and send it again; see /api/v1/docs/.",
    status.HTTP_403_FORBIDDEN: HINTS["permission_denied"],
    status.HTTP_409_CONFLICT: "Read the current state, then decide again.",
}

# Names of no field, of DRF's serializers and of Django's forms.
OF_THE_WHOLE = ("non_field_errors", "__all__")


def hint(word: str, code: int) -> str:
    """What to do about it; never empty."""
    return HINTS.get(word) or GENERAL_HINTS.get(code, "See /api/v1/docs/.")


class ApiProblem(exceptions.APIException):
    """An error that says what, where and what to do. `more` adds keys to the body."""

    status_code: int = status.HTTP_400_BAD_REQUEST
    default_code = "invalid"

    def __init__(
        self, detail: str, *, where: str = "", what_to_do: str = "", code: str = "", **more: Any
    ) -> None:
        super().__init__(detail, code or self.default_code)
        self.word = code or self.default_code
        self.where = where
        self.what_to_do = what_to_do or hint(self.word, self.status_code)
        self.more = more


class Conflict(ApiProblem):
    """Says that a request does not fit the present state."""

    status_code = status.HTTP_409_CONFLICT
    default_code = "conflict"


class Forbidden(ApiProblem):
    status_code = status.HTTP_403_FORBIDDEN
    default_code = "permission_denied"


class BrokerProblem(ApiProblem):
    """The broker does not answer, or answers with an error."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
    default_code = "broker_away"


def body(error: str, detail: str, where: str, what_to_do: str, **more: Any) -> dict[str, Any]:
    found = {"error": error, "detail": detail, "where": where, "what_to_do": what_to_do, **more}
    # A command asks the same views, and is no request.
    return {**found, "id": request_id()} if request_id() else found


def answer(error: Exception, context: dict[str, Any]) -> Response:
    """DRF's exception handler."""
    if isinstance(error, BrokerError):
        log.warning("broker does not answer", reason=str(error))
        error = BrokerProblem(str(BROKER_AWAY(problem=str(error))), where=_path(context))
    if isinstance(error, ApiProblem):
        return _response(
            error.status_code,
            body(error.word, str(error.detail), error.where, error.what_to_do, **error.more),
        )
    if isinstance(error, ContractError):
        return _contract_error(error)
    if isinstance(error, RequestDataTooBig):
        return _response(413, body("too_large", str(error), "body", "Send less data per request."))
    if isinstance(error, (DatabaseError, InterfaceError)):
        return _internal(
            error, context, 503, "database_away", "The database is unavailable.", "Try again later."
        )
    if isinstance(error, Http404):
        error = exceptions.NotFound()
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied(missing_in_english(getattr(error, "permissions", ())))
    if isinstance(error, exceptions.APIException):
        return _framework_error(error, context)
    return _internal(
        error,
        context,
        500,
        "internal",
        "Internal error of the MA.",
        "Search the log of the web process for the id.",
    )


def _contract_error(error: ContractError) -> Response:
    if isinstance(error, UnsupportedVersion):
        return _response(
            400, body("unsupported_version", str(error), error.path, "Upgrade the older of MA and KMA.")
        )
    return _response(
        400, body("not_as_agreed", str(error), error.path or "body", "Send a body that matches the schema.")
    )


def _framework_error(error: exceptions.APIException, context: dict[str, Any]) -> Response:
    word = str(error.default_code)
    where, detail = _first_problem(error.detail)
    response = _response(
        error.status_code, body(word, detail, where or _path(context), hint(word, error.status_code))
    )
    if header := getattr(error, "auth_header", None):
        response["WWW-Authenticate"] = header
    if wait := getattr(error, "wait", None):
        response["Retry-After"] = str(int(wait) + 1)
    return response


def _first_problem(detail: Any, path: str = "") -> tuple[str, str]:
    """Path of the first field that is wrong, and every problem in one text."""
    problems = _problems(detail, path)
    where = problems[0][0] if problems else path
    return where, " ".join(f"{place}: {text}" if place else text for place, text in problems)


def _problems(detail: Any, path: str) -> list[tuple[str, str]]:
    if isinstance(detail, dict):
        found = []
        for name, item in detail.items():
            place = path if name in OF_THE_WHOLE else f"{path}.{name}" if path else str(name)
            found += _problems(item, place)
        return found
    if isinstance(detail, list):
        return [problem for item in detail for problem in _problems(item, path)]
    return [(path, str(detail))]


def _internal(
    error: Exception, context: dict[str, Any], code: int, word: str, detail: str, what_to_do: str
) -> Response:
    log.error("api error", path=_path(context), error=word, exc_info=error)
    told = f"{detail} Id: {request_id()}." if request_id() else detail
    response = _response(code, body(word, told, "", what_to_do))
    if code == status.HTTP_503_SERVICE_UNAVAILABLE:
        response["Retry-After"] = "5"
    return response


def _path(context: dict[str, Any]) -> str:
    request = context.get("request")
    return request.path if request is not None else ""


def _response(code: int, data: dict[str, Any]) -> Response:
    return Response(data, status=code)


def unknown_address(request: HttpRequest, path: str = "") -> JsonResponse:
    """Answers what is under /api/ and no route with JSON, not with the login page of the admin."""
    return JsonResponse(
        body("not_found", "Route not found.", request.path, "See /api/v1/docs/; every path ends in /."),
        status=404,
    )
