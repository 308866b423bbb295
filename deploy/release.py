"""./ma release: both wheels, what they need as a lock with hashes, a bill of materials and a list of
licences. The same commit gives the same wheels, whoever builds them, where and when.

./ma audit: whether every licence is one that the product may be shipped with.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deploy.config import REPOSITORY, Config
from deploy.console import DeployError, run_logged, say_if_heard
from deploy.installing import python_packages
from deploy.installing.python_packages import CONSTRAINTS, PYTHON
from deploy.layout import Layout

PACKAGES = {
    "ma-kma": ("broker", "contract", "exposition", "kma"),
    "ma-server": (
        "agents", "alerts", "console", "deploy", "dlq", "failures", "insights", "ma_site", "metrics",
        "pipeline", "retention", "locale", "static", "templates", "manage.py", "Procfile",
    ),
}  # fmt: skip
# What only a clone or only the pipeline needs.
NOT_INSTALLED, PIPELINE = ("supervisor",), ("pyspark", "pyarrow")
NAMESPACE = uuid.UUID("7a4b2c60-3c1e-4c5e-9a53-6f1f0f5c2b11")


def release(config: Config, arguments: Sequence[str]) -> int:
    """`arguments`: the folder, else dist."""
    if len(arguments) > 1 or any(each.startswith("-") for each in arguments):
        raise DeployError("usage: ./ma release [FOLDER]")
    dist = Path(*arguments).absolute() if arguments else REPOSITORY / "dist"
    log = _installed(config)
    dist.mkdir(parents=True, exist_ok=True)
    for name in PACKAGES:
        for old in dist.glob(f"{name.replace('-', '_')}-*.whl"):
            old.unlink()
    moment = _moment()
    with tempfile.TemporaryDirectory(prefix="ma-release-") as folder:
        source = Path(folder) / "source"
        _export(source)
        for name, parts in PACKAGES.items():
            wheel = _build(name, parts, source, Path(folder) / name, dist, moment, log)
            say_if_heard(f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}")
    _dependencies(dist, log)
    for name, file in (("ma-kma", "requirements-kma.txt"), ("ma-server", "requirements.txt")):
        found = _resolved(file, log)
        (dist / f"{name}.lock.txt").write_text(lock(found), "utf-8")
        bill = bill_of_materials(name, version(), found, moment)
        (dist / f"{name}.cdx.json").write_text(json.dumps(bill, indent=1, sort_keys=True) + "\n", "utf-8")
        (dist / f"{name}.licences.txt").write_text(licences(found), "utf-8")
    say_if_heard(f"{dist}: wheels of both and of what they need, locks, bills of materials, licences")
    return 0


def audit(config: Config, arguments: Sequence[str]) -> int:
    if arguments:
        raise DeployError("usage: ./ma audit")
    log = _installed(config)
    refused = [
        f"{each['metadata']['name']}: {licence_of(each['metadata'])}"
        for each in _resolved("requirements.txt", log)
        if not is_allowed(licence_of(each["metadata"]))
    ]
    for line in refused:
        say_if_heard(f"licences: not allowed: {line}")
    if not refused:
        say_if_heard("licences: ok")
    say_if_heard("vulnerabilities: not checked (no database of advisories here)")
    return 1 if refused else 0


def _installed(config: Config) -> Path:
    layout = Layout(config.data)
    layout.make_folders()
    log = layout.log("release")
    lines = (
        *python_packages.requirements("requirements.txt"),
        *python_packages.requirements("requirements-release.txt"),
    )
    if not python_packages.installed(lines, "release"):
        python_packages.install(lines, "release", log)
    return log


# -- wheels --------------------------------------------------------------------------------------------------


def _git(*arguments: str) -> bytes:
    done = subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, check=False)
    if done.returncode != 0:
        raise DeployError(f"a release is built from a clone: {done.stderr.decode().strip()}")
    return done.stdout


def _moment() -> int:
    """Of the commit: no clock of who builds is in what is built."""
    return int(_git("log", "-1", "--format=%ct"))


def _export(target: Path) -> None:
    """What is committed, and nothing else that lies there."""
    target.mkdir()
    subprocess.run(["tar", "-x", "-C", str(target)], input=_git("archive", "HEAD"), check=True)


def _build(
    name: str, parts: Sequence[str], source: Path, stage: Path, dist: Path, moment: int, log: Path
) -> Path:
    stage.mkdir()
    for part in parts:
        place = source / part
        (shutil.copytree if place.is_dir() else shutil.copy2)(place, stage / part)
    for part in ("README.md", "LICENSE"):
        shutil.copy2(source / part, stage / part)
    shutil.copy2(source / "contract" / "__init__.py", stage / "version.py")
    text = (source / "packaging" / f"{name}.toml").read_text("utf-8")
    (stage / "pyproject.toml").write_text(filled_in(name, text), "utf-8")
    for path in sorted(stage.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    run_logged(
        [PYTHON, "-m", "hatchling", "build", "-t", "wheel", "-d", dist],
        what=f"The build of {name}",
        log=log,
        cwd=stage,
        env={**os.environ, "SOURCE_DATE_EPOCH": str(moment), "PYTHONHASHSEED": "0"},
    )
    (built,) = dist.glob(f"{name.replace('-', '_')}-*.whl")
    return built


def _dependencies(dist: Path, log: Path) -> None:
    """Wheels of what both need, so that a host needs neither an index nor a compiler: python-qpid-proton is
    published as source only. Spark comes by itself."""
    lines = [
        line for line in python_packages.requirements("requirements.txt") if not line.startswith(PIPELINE)
    ]
    command: list[str | Path] = [PYTHON, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet"]
    run_logged([*command, "-w", dist, "-c", CONSTRAINTS, *lines], what="pip wheel", log=log)
    if _printed_by_python("from proton import SSL; print(SSL.present())").strip() != "True":
        raise DeployError(
            "this python-qpid-proton was built without OpenSSL: install libssl-dev, build it again"
        )


def filled_in(name: str, text: str) -> str:
    """With what the requirements files say; a lock has the exact versions."""
    kma = python_packages.requirements("requirements-kma.txt")
    if name == "ma-kma":
        needs, extra = kma, tuple(set(python_packages.requirements("requirements-traces.txt")))
    else:
        more = [line for line in python_packages.requirements("requirements.txt") if line not in kma]
        needs = (
            f"ma-kma=={version()}",
            *(line for line in more if not line.startswith(NOT_INSTALLED + PIPELINE)),
        )
        extra = tuple(line for line in more if line.startswith(PIPELINE))
    text = text.replace("dependencies = []", f"dependencies = {_list(needs)}", 1)
    return re.sub(r"(optional-dependencies\.\w+ = )\[\]", lambda found: found[1] + _list(extra), text)


def _list(lines: Sequence[str]) -> str:
    """Not older than what was tested; ours exactly."""
    needs = [line if line.startswith("ma-") else line.replace("==", ">=") for line in lines]
    return json.dumps(sorted(needs))


def version() -> str:
    text = (REPOSITORY / "contract" / "__init__.py").read_text("utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise DeployError("contract/__init__.py names no version")
    return found[1]


# -- what comes with them ------------------------------------------------------------------------------------


Resolved = dict[str, Any]


def _resolved(requirements: str, log: Path) -> list[Resolved]:
    """Every package that would be installed, from pip's own report, by name."""
    with tempfile.TemporaryDirectory(prefix="ma-report-") as folder:
        report = Path(folder) / "report.json"
        command: list[str | Path] = [PYTHON, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        command += ["--dry-run", "--ignore-installed", "--report", report]
        command += ["-c", CONSTRAINTS, "-r", REPOSITORY / requirements]
        run_logged(command, what="pip's report", log=log)
        found = json.loads(report.read_text("utf-8"))["install"]
    expressions = json.loads(_printed_by_python(EXPRESSIONS))
    for each in found:
        if expression := expressions.get(each["metadata"]["name"]):
            each["metadata"]["license_expression"] = expression
    return sorted(found, key=lambda each: str(each["metadata"]["name"]).lower())


# An older pip leaves this field out of its report; what is installed has it.
EXPRESSIONS = """
import importlib.metadata, json
print(json.dumps({each.metadata["Name"]: each.metadata["License-Expression"]
                  for each in importlib.metadata.distributions() if each.metadata["License-Expression"]}))
"""


def _printed_by_python(program: str) -> str:
    return subprocess.run([PYTHON, "-c", program], check=True, capture_output=True, text=True).stdout


def _hash(each: Resolved) -> str:
    return str(each["download_info"]["archive_info"]["hashes"]["sha256"])


def lock(found: Sequence[Resolved]) -> str:
    """For `pip install --require-hashes`, on the Python and machine that made it."""
    lines = [
        f"{each['metadata']['name']}=={each['metadata']['version']} --hash=sha256:{_hash(each)}"
        for each in found
    ]
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
    name = re.sub(r"[-_.]+", "-", str(each["metadata"]["name"])).lower()
    return f"pkg:pypi/{name}@{each['metadata']['version']}"


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
