"""GET /api/v1/queues/<key>/: the broker's figures of a setting's subscription and dead-letter queue."""

from dataclasses import asdict
from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.models import LaunchSetting
from agents.provisioning.queue_counts import queue_figures


class FiguresSerializer(serializers.Serializer[Any]):
    waiting = serializers.IntegerField()
    delayed = serializers.IntegerField()
    in_delivery = serializers.IntegerField()
    consumers = serializers.IntegerField()
    dead = serializers.IntegerField()
    at = serializers.DateTimeField()


class QueueView(APIView):
    action_permissions = {"get": ("agents.view_launchsetting",)}

    @extend_schema(responses=FiguresSerializer)
    def get(self, request: Request, key: str) -> Response:
        setting = get_object_or_404(LaunchSetting, key=key)
        return Response(FiguresSerializer(asdict(queue_figures(setting, timezone.now()))).data)
