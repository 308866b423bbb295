"""Who may ask for dead letters over REST: with the permission for all of them, with a right in a pool for
some."""

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _
from rest_framework.request import Request
from rest_framework.views import APIView

from agents.services.rights import may_anywhere
from console.rest.errors import Forbidden
from dlq import rights

if TYPE_CHECKING:
    Base = APIView
else:
    Base = object


class SeesLetters(Base):
    """First among the bases of a view: 403 for who may see none at all. Which ones, the view asks
    `dlq.letters_for`."""

    action_permissions: dict[str, tuple[str, ...]] = {"get": (), "post": (), "patch": (), "delete": ()}

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not may_anywhere(request.user, rights.SEE):
            raise Forbidden(_("You may not see dead letters."))
