"""/api/v1/grants/: what groups of people may do with the settings of one pool."""

from django.contrib.auth.models import Group
from rest_framework import serializers, viewsets

from agents.models import Pool, PoolGrant
from console.audit.forms import RecordedRows
from console.rest.serializers import CheckedModelSerializer


class GrantSerializer(CheckedModelSerializer[PoolGrant]):
    pool = serializers.SlugRelatedField(slug_field="name", queryset=Pool.objects.all())
    group = serializers.SlugRelatedField(
        slug_field="name", queryset=Group.objects.all(), help_text="A group of people, not of settings."
    )

    class Meta:
        model = PoolGrant
        fields = (
            "id", "pool", "group", "may_edit", "may_enable", "may_disable", "may_run", "may_stop",
            "may_answer", "may_see_letters", "may_see_masked", "may_give_back", "may_edit_letters",
            "may_redirect",
            "may_discard", "may_handle_waiting", "may_import_letters",
        )  # fmt: skip


class GrantViewSet(RecordedRows, viewsets.ModelViewSet[PoolGrant]):
    """An administrator's: whoever may write here can give every right away."""

    queryset = PoolGrant.objects.select_related("pool", "group").order_by("pool__name", "group__name")
    serializer_class = GrantSerializer
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]
