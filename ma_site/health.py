"""/healthz/: what works, without a login and without secrets."""

from django.http import HttpRequest, JsonResponse


def health(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok", "parts": {}, "servers": {}})
