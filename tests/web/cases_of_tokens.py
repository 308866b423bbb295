"""A token of each kind, which can be revoked."""

from django.contrib.auth.models import User

from agents.models import Pool, ServerToken
from agents.servers.operations import RevokeServerToken
from console.models import ApiToken
from console.tokens.operations import RevokeToken
from tests.web.operation_case import Case


def token(pool: Pool) -> ApiToken:
    script = User.objects.create_user("script", password=None)
    return ApiToken.objects.create(user=script, name="nightly", digest="d")


def server_token(pool: Pool) -> ServerToken:
    return ServerToken.objects.create(server=pool.servers.get(name="srv-1"), digest="d")


CASES = (
    Case(RevokeToken, token, "console.change_apitoken", detail={"user": "script", "name": "nightly"}),
    Case(RevokeServerToken, server_token, "agents.change_servertoken", detail={"server": "srv-1"}),
)
