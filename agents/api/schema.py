"""Names our authentication classes in the OpenAPI description."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class PersonTokenScheme(OpenApiAuthenticationExtension):
    target_class = "agents.api.authentication.PersonTokenAuthentication"
    name = "personToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "ma_…, from ./ma manage create_api_token USER",
        }


class ServerTokenScheme(OpenApiAuthenticationExtension):
    target_class = "agents.api.authentication.ServerTokenAuthentication"
    name = "serverToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "kma_…, from ./ma manage create_server NAME",
        }


class AnyTokenScheme(OpenApiAuthenticationExtension):
    target_class = "agents.api.authentication.AnyTokenAuthentication"
    name = "personOrServerToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "description": "ma_… of a person or kma_… of a server"}
