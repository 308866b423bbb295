"""What comes with the packages of a release: locks with hashes, bills of materials, licences. Made of what
pip reports."""

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

NAMESPACE = uuid.UUID("7a4b2c60-3c1e-4c5e-9a53-6f1f0f5c2b11")
Resolved = dict[str, Any]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _hash(each: Resolved) -> str:
    return str(each["download_info"]["archive_info"]["hashes"]["sha256"])


def own_lines(name: str, version: str, here: Mapping[str, Sequence[str]]) -> str:
    """Of our packages that `name` is installed with. `here`: SHA-256 of wheels, by `name==version`."""
    mine = {"ma-kma": ("ma-kma",), "ma-server": ("ma-kma", "ma-server")}.get(name, ())
    pinned = [f"{each}=={version}" for each in mine]
    return "".join(f"{each} --hash=sha256:{here[each][0]}\n" for each in pinned)


def lock(found: Sequence[Resolved], here: Mapping[str, Sequence[str]]) -> str:
    """For `pip install --require-hashes`. Hashes of what is published for this Python, then of what was built
    here or is for another one."""
    lines = []
    for each in found:
        pinned = f"{each['metadata']['name']}=={each['metadata']['version']}"
        more = here.get(f"{normal(str(each['metadata']['name']))}=={each['metadata']['version']}", ())
        said = " ".join(f"--hash=sha256:{one}" for one in dict.fromkeys([_hash(each), *more]))
        lines.append(f"{pinned} {said}")
    return "\n".join(lines) + "\n"


def bill_of_materials(name: str, version: str, found: Sequence[Resolved], moment: int) -> dict[str, Any]:
    """CycloneDX 1.6."""
    components = [
        {
            "type": "library",
            "bom-ref": _purl(each),
            "name": each["metadata"]["name"],
            "version": each["metadata"]["version"],
            "purl": _purl(each),
            "hashes": [{"alg": "SHA-256", "content": _hash(each)}],
            "licenses": [{"license": {"name": licence_of(each["metadata"])}}],
        }
        for each in found
    ]
    own = f"pkg:pypi/{name}@{version}"
    serial = uuid.uuid5(NAMESPACE, json.dumps([own, components], sort_keys=True))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": name,
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [_purl(each) for each in found]}],
    }


def _purl(each: Resolved) -> str:
    return f"pkg:pypi/{normal(str(each['metadata']['name']))}@{each['metadata']['version']}"


def licences(found: Sequence[Resolved]) -> str:
    lines = [
        f"{each['metadata']['name']} {each['metadata']['version']}: {licence_of(each['metadata'])}"
        for each in found
    ]
    return "\n".join(lines) + "\n"


def licence_of(metadata: Resolved) -> str:
    """What the package says of itself, the most exact first."""
    if expression := metadata.get("license_expression"):
        return str(expression)
    named = [
        line.rpartition(" :: ")[2]
        for line in metadata.get("classifier", ())
        if line.startswith("License :: ") and line != "License :: OSI Approved"
    ]
    if named:
        return " OR ".join(named)
    text = str(metadata.get("license") or "").strip()
    return text.splitlines()[0][:80] if text else "unknown"


# Words of licences under which the product may be shipped together with the package.
ALLOWED = (
    "apache", "bsd", "mit", "isc", "python software foundation", "psf", "mozilla public license 2.0",
    "mpl-2.0", "lesser general public license", "lgpl", "unlicense", "zope", "zpl", "hpnd", "0bsd",
)  # fmt: skip


def is_allowed(licence: str) -> bool:
    said = licence.lower()
    return any(re.search(rf"\b{word}", said) for word in ALLOWED)
