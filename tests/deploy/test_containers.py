"""Container file, compose file and Kubernetes manifest: as their schemas want them, and with as few rights as
docs/how-to/containers.md says."""

import copy
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from deploy.config import REPOSITORY
from deploy.installed import ROLES

CONTAINERS = REPOSITORY / "packaging" / "containers"
NEWEST = "1.37"
PROGRAMS = {"kma", *(f"ma {role}" for role in ROLES)}
PREPARE = {"ma migrate --noinput", "ma collectstatic --noinput"}


def compose() -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((CONTAINERS / "compose.yaml").read_text("utf-8"))
    return read


def manifest() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((CONTAINERS / "kubernetes.yaml").read_text("utf-8")))


def pods() -> Iterator[dict[str, Any]]:
    for each in manifest():
        if each["kind"] in ("Job", "Deployment", "StatefulSet"):
            yield each["spec"]["template"]["spec"]


def containers() -> Iterator[dict[str, Any]]:
    for pod in pods():
        yield from pod.get("initContainers", [])
        yield from pod["containers"]


def schema_of_compose() -> dict[str, Any]:
    text = (files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json").read_text("utf-8")
    read: dict[str, Any] = json.loads(text)
    return read


def test_the_compose_file_is_as_its_schema_wants_it() -> None:
    jsonschema.validate(compose(), schema_of_compose())
    wrong = copy.deepcopy(compose())
    wrong["services"]["web"]["read_onyl"] = True
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(wrong, schema_of_compose())


def test_kubernetes_knows_every_field_of_the_manifest() -> None:
    for each in manifest():
        kubernetes_validate.validate(each, NEWEST, strict=True)
    (job,) = (each for each in manifest() if each["kind"] == "Job")
    job["spec"]["template"]["spec"]["enableServiceLink"] = False
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, NEWEST, strict=True)


def test_all_roles_run_from_one_image() -> None:
    services = compose()["services"].values()
    assert {" ".join(each["command"]) for each in services} == PROGRAMS | PREPARE
    assert {" ".join(each["command"]) for each in containers()} == PROGRAMS | PREPARE
    assert len({each["image"] for each in (*services, *containers())}) == 1


def test_none_is_root_writes_outside_its_volumes_or_gets_more_rights() -> None:
    for service in compose()["services"].values():
        assert service["user"] == "10001:10001" and service["read_only"] is True
        assert service["cap_drop"] == ["ALL"] and "no-new-privileges:true" in service["security_opt"]
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["fsGroup"] == 10001
        assert pod["automountServiceAccountToken"] is False
    for container in containers():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
    assert "USER 10001:10001" in (CONTAINERS / "Containerfile").read_text("utf-8").splitlines()


def test_variables_of_the_cluster_are_not_taken_for_ours() -> None:
    """A Service called `ma` would set MA_PORT to an address."""
    assert all(pod["enableServiceLinks"] is False for pod in pods())


def test_secrets_are_files() -> None:
    text = (CONTAINERS / "compose.yaml").read_text() + (CONTAINERS / "kubernetes.yaml").read_text()
    secret = r"\b\w+_(?:PASSWORD|SECRET_KEY|TOKEN|DATABASE_URL|REDIS_URL)\b"
    assert not re.findall(secret, text)
    assert len(re.findall(rf"{secret[:-2]}_FILE\b", text)) == 10
    for service in compose()["services"].values():
        named = {
            value.rpartition("/")[2] for key, value in service["environment"].items() if key[-5:] == "_FILE"
        }
        assert named == set(service["secrets"])


def test_the_site_is_asked_how_it_is_by_its_probes() -> None:
    (web,) = (each for each in containers() if each["name"] == "web")
    paths = {kind: web[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
    assert paths == {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}
    assert "/readyz" in compose()["services"]["web"]["healthcheck"]["test"][-1]


def test_a_kma_never_has_two_processes_on_one_spool() -> None:
    (kma,) = (each for each in manifest() if each["kind"] == "StatefulSet")
    assert kma["spec"]["replicas"] == 1
    assert [each["metadata"]["name"] for each in kma["spec"]["volumeClaimTemplates"]] == ["data"]
