"""Saved filters over REST: a list gets both views by deriving them with its `filters` and its permission."""

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.audit.refusals import Audited
from console.models import SavedFilter
from console.operations.operation import Operation, perform
from console.operations.rest import as_problems
from console.rest.serializers import BodySerializer
from console.saved_filters.operations import (
    LONGEST_NAME,
    LONGEST_QUERY,
    ChangeFilter,
    DeleteFilter,
    SavedFilters,
    SaveFilter,
)


class SavedFilterSerializer(serializers.ModelSerializer[SavedFilter]):
    owner = serializers.CharField(source="owner.username", read_only=True)

    class Meta:
        model = SavedFilter
        fields = ("id", "name", "query", "shared", "owner", "created_at")
        read_only_fields = fields


class SavedFilterAskSerializer(BodySerializer):
    name = serializers.CharField(max_length=LONGEST_NAME)
    query = serializers.CharField(
        max_length=LONGEST_QUERY, help_text="As in the address of the list: `exception=KeyError&span=1d`."
    )
    shared = serializers.BooleanField(required=False, default=False)


class SavedFilterChangeSerializer(BodySerializer):
    """What is left out stays."""

    name = serializers.CharField(max_length=LONGEST_NAME, required=False)
    query = serializers.CharField(max_length=LONGEST_QUERY, required=False)
    shared = serializers.BooleanField(required=False)


class SavedFilterList(Audited, generics.ListAPIView[SavedFilter]):
    filters: ClassVar[SavedFilters]
    queryset = SavedFilter.objects.all()
    serializer_class = SavedFilterSerializer
    filter_backends = ()
    audit_action = SaveFilter.code

    def get_queryset(self) -> QuerySet[SavedFilter]:
        return self.filters.usable(self.request.user)

    @extend_schema(request=SavedFilterAskSerializer, responses={201: SavedFilterSerializer})
    def post(self, request: Request) -> Response:
        """A name is used once by each person."""
        owner: Any = request.user
        saved = SavedFilter(list=self.filters.word, owner=owner)
        made = _done(SaveFilter, saved, request, SavedFilterAskSerializer)
        return Response(SavedFilterSerializer(made).data, status=status.HTTP_201_CREATED)


class OneSavedFilter(Audited, APIView):
    filters: ClassVar[SavedFilters]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        self.audit_action = (DeleteFilter if request.method == "DELETE" else ChangeFilter).code
        super().initial(request, *args, **kwargs)

    @extend_schema(responses=SavedFilterSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(SavedFilterSerializer(self._one(pk)).data)

    @extend_schema(request=SavedFilterChangeSerializer, responses=SavedFilterSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        """Only its owner changes it."""
        made = _done(ChangeFilter, self._one(pk), request, SavedFilterChangeSerializer)
        return Response(SavedFilterSerializer(made).data)

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Only its owner deletes it."""
        with as_problems(""):
            perform(DeleteFilter, self._one(pk), request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _one(self, pk: int) -> SavedFilter:
        return get_object_or_404(self.filters.usable(self.request.user), pk=pk)


def _done(
    operation: type[Operation[SavedFilter]], saved: SavedFilter, request: Request, body: type[BodySerializer]
) -> SavedFilter:
    said = body(data=request.data)
    said.is_valid(raise_exception=True)
    with as_problems(""):
        made: SavedFilter = perform(operation, saved, request.user, **said.validated_data).made
    return made
