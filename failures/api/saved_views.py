"""/api/v1/protocols/saved/: filters of protocols under a name, one's own and those that others share."""

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.api.saved_filters import SavedFilterAskSerializer, SavedFilterChangeSerializer, refuse
from agents.services.saved import FilterRefused
from failures.models import SavedView
from failures.saved import views

VIEW: tuple[str, ...] = ("failures.view_failureprotocol",)
MAY = {"get": VIEW, "post": VIEW, "patch": VIEW, "delete": VIEW}


class SavedViewSerializer(serializers.ModelSerializer[SavedView]):
    owner = serializers.CharField(source="owner.username", read_only=True)

    class Meta:
        model = SavedView
        fields = ("id", "name", "query", "shared", "owner", "created_at")
        read_only_fields = fields


class SavedViews(generics.ListAPIView[SavedView]):
    queryset = SavedView.objects.all()
    serializer_class = SavedViewSerializer
    filter_backends = ()
    action_permissions: dict[str, tuple[str, ...]] = MAY

    def get_queryset(self) -> Any:
        return views.usable(self.request.user)

    @extend_schema(request=SavedFilterAskSerializer, responses={201: SavedViewSerializer})
    def post(self, request: Request) -> Response:
        """A name is used once by each person."""
        ask = SavedFilterAskSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        try:
            saved = views.save(**ask.validated_data, by=request.user, now=timezone.now())
        except FilterRefused as refused:
            refuse(refused)
        return Response(SavedViewSerializer(saved).data, status=status.HTTP_201_CREATED)


class OneSavedView(APIView):
    action_permissions: dict[str, tuple[str, ...]] = MAY

    def _one(self, pk: int) -> SavedView:
        return get_object_or_404(views.usable(self.request.user), pk=pk)

    @extend_schema(responses=SavedViewSerializer)
    def get(self, request: Request, pk: int) -> Response:
        return Response(SavedViewSerializer(self._one(pk)).data)

    @extend_schema(request=SavedFilterChangeSerializer, responses=SavedViewSerializer)
    def patch(self, request: Request, pk: int) -> Response:
        """Only its owner changes it."""
        ask = SavedFilterChangeSerializer(data=request.data)
        ask.is_valid(raise_exception=True)
        try:
            saved = views.change(self._one(pk), **ask.validated_data, by=request.user, now=timezone.now())
        except FilterRefused as refused:
            refuse(refused)
        return Response(SavedViewSerializer(saved).data)

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Only its owner deletes it."""
        try:
            views.delete(self._one(pk), by=request.user, now=timezone.now())
        except FilterRefused as refused:
            refuse(refused)
        return Response(status=status.HTTP_204_NO_CONTENT)
