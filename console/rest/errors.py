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
    "not_found": "Look at the list of this resource, or at /api/v1/docs/.",
    "method_not_allowed": "See /api/v1/docs/ for what this address takes.",
    "throttled": "Wait, then ask less often.",
    "unsupported_media_type": "Send Content-Type: application/json.",
    "invalid": "Correct the field and send it again.",
    "parse_error": "Send a JSON object in UTF-8.",
    # Refusals of services, by their code, where the refusal itself says no more.
    "bad_filter": "Correct the filter; GET the list with it to see what it finds.",
    "bad_options": "Correct the options, see /api/v1/docs/.",
    "bad_pointer": "Write a JSON pointer to a place in the body, like /order/lines/0/sum.",
    "empty": "Send a text.",
    "broker_away": "Nothing was changed; try again later.",
    "ended": "Nothing is to be done: read it again to see how it ended.",
    "exists": "Nothing is to be done: it is there already.",
    "no_destination": "Choose a setting of a message agent.",
    "no_json": "Choose messages whose body is JSON, or set properties only.",
    "no_name": "Send a name.",
    "no_person": "Name a user who may see these dead letters.",
    "no_reason": "Send a reason.",
    "reason_needed": "Send a reason.",
    "nothing": "Read the list again: they were handled or moved meanwhile.",
    "nothing_named": "Name what it is about.",
    "nothing_to_give_back": "Read the list again, and choose messages that are dead.",
    "nobody": "Ask for the job again, as a person who exists.",
    "no_target": "Name the setting that is to get the messages.",
    "open": "Wait until it ends, or cancel it.",
    "other_state": "Read the job again: its state says what is possible.",
    "outstanding": "Wait for the outcome of the replay that has them.",
    "over": "Nothing is to be done: read it again to see how it ended.",
    "own_request": "Let another person with the permission decide.",
    "pointer_missing": "Write a pointer to a place that the body has.",
    "same": "No action is needed.",
    "selection": "Choose fewer messages, or at least one.",
    "too_many": "Choose fewer at a time, for example by a shorter time span.",
    "truncated": "Fetch the whole message first, or choose others.",
    "unchanged": "Nothing is to be done: change something, or leave it.",
    "unreadable": "Send the changes as /api/v1/docs/ describes them.",
}
# For whatever has no hint of its own: an answer without advice leaves people with the problem.
GENERAL_HINTS = {
    status.HTTP_400_BAD_REQUEST: "Correct what is named and send it again; /api/v1/docs/ describes it.",
    status.HTTP_403_FORBIDDEN: HINTS["permission_denied"],
    status.HTTP_409_CONFLICT: "Read its present state again, then decide anew.",
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
        return _response(413, body("too_large", str(error), "body", "Send less at once."))
    if isinstance(error, (DatabaseError, InterfaceError)):
        return _internal(
            error, context, 503, "database_away", "The database did not do its work.", "Try again later."
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
        "Something went wrong in the MA.",
        "Look for the id in the log of the web process.",
    )


def _contract_error(error: ContractError) -> Response:
    if isinstance(error, UnsupportedVersion):
        return _response(
            400, body("unsupported_version", str(error), error.path, "Upgrade the older of MA and KMA.")
        )
    return _response(
        400, body("not_as_agreed", str(error), error.path or "body", "Send what the schema describes.")
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
        body(
            "not_found", "There is no such address.", request.path, "See /api/v1/docs/; every path ends in /."
        ),
        status=404,
    )
