"""/api/v1/saved-filters/: filters of dead letters under a name, one's own and those that others share."""

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.api.saved_filters import SavedFilterAskSerializer, SavedFilterChangeSerializer, refuse
from dlq.api.seeing import SeesLetters
from dlq.finding import saved as filters
from dlq.models import SavedFilter


class SavedFilterSerializer(serializers.ModelSerializer[SavedFilter]):
    owner = serializers.CharField(source="owner.username", read_only=True)

    class Meta:
        model = SavedFilter
        fields = ("id", "name", "query", "shared", "owner", "created_at")
        read_only_fields = fields


class SavedFilters(SeesLetters, generics.ListAPIView[SavedFilter]):
    queryset = SavedFilter.objects.all()
    serializer_class = SavedFilterSerializer
    filter_backends = ()

    def get_queryset(self) -> Any:
        return filters.saved_for(self.request.user)

    @extend_schema(request=SavedFilterAskSerializer, responses={201: SavedFilterSerializer})
    def post(self, request: Request) -> Response:
        """A name is used once by each person."""
        ask = SavedFilterAskSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        try:
            saved = filters.save(**ask.validated_data, by=request.user, now=timezone.now())
        except filters.FilterRefused as refused:
            refuse(refused)
        return Response(SavedFilterSerializer(saved).data, status=status.HTTP_201_CREATED)


class OneSavedFilter(SeesLetters, APIView):
    def _one(self, pk: int) -> SavedFilter:
        return get_object_or_404(filters.saved_for(self.request.user), pk=pk)

    @extend_schema(responses=SavedFilterSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(SavedFilterSerializer(self._one(pk)).data)

    @extend_schema(request=SavedFilterChangeSerializer, responses=SavedFilterSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        """Only its owner changes it."""
        ask = SavedFilterChangeSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        try:
            saved = filters.change(self._one(pk), **ask.validated_data, by=request.user, now=timezone.now())
        except filters.FilterRefused as refused:
            refuse(refused)
        return Response(SavedFilterSerializer(saved).data)

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Only its owner deletes it."""
        try:
            filters.delete(self._one(pk), by=request.user, now=timezone.now())
        except filters.FilterRefused as refused:
            refuse(refused)
        return Response(status=status.HTTP_204_NO_CONTENT)
