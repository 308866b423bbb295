"""The wheel of python-qpid-proton, which is published as source only: built here, the same from every clone,
so that no host needs a compiler."""

import os
import re
import subprocess
import tempfile
import zipfile
from pathlib import Path

from deploy.console import DeployError, run_logged
from deploy.installing.python_packages import CONSTRAINTS, PYTHON, requirements

NAME = "python-qpid-proton"
# Nothing of who builds: no paths of temporary folders, no clock, no umask.
FLAGS = "-g0"
# It uses nothing but Python's stable ABI: one wheel for this Python and all newer ones.
OLDEST = "cp311"
AS_ANYBODY = ["sh", "-c", 'umask 022; exec "$@"', "sh"]
ASKED = "import proton; print(proton.__file__); print(proton.SSL.present())"


def build(dist: Path, moment: int, log: Path) -> Path:
    """Raises DeployError where it cannot speak TLS."""
    for old in dist.glob(f"{NAME.replace('-', '_')}-*.whl"):
        old.unlink()
    (line,) = (line for line in requirements("requirements-kma.txt") if line.startswith(NAME))
    pip: list[str | Path] = [
        *AS_ANYBODY,
        PYTHON,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "wheel",
        "--quiet",
    ]
    pip += [f"--config-settings=--build-option=--py-limited-api={OLDEST}"]
    pip += ["--no-cache-dir", "--no-deps", "--no-binary", NAME, "-w", dist, "-c", CONSTRAINTS, line]
    environ = {**os.environ, "SOURCE_DATE_EPOCH": str(moment), "CFLAGS": FLAGS}
    run_logged(pip, what=f"The build of {NAME}", log=log, env=environ)
    (built,) = dist.glob(f"{NAME.replace('-', '_')}-*.whl")
    with tempfile.TemporaryDirectory(prefix="ma-proton-") as folder:
        zipfile.ZipFile(built).extractall(folder)
        (binary,) = Path(folder).glob("cproton_ffi*.so")
        check_tls(Path(folder))
        (dist / f"{NAME}.needs.txt").write_text(needs_of(built.name, binary.read_bytes()), "utf-8")
    return built


def check_tls(unpacked: Path) -> None:
    """Asks the wheel, and not the one that is installed here."""
    environ = {**os.environ, "PYTHONPATH": str(unpacked)}
    asked = subprocess.run([PYTHON, "-c", ASKED], env=environ, capture_output=True, text=True, check=False)
    said = asked.stdout.splitlines()
    if len(said) != 2 or not said[0].startswith(f"{unpacked}/"):
        raise DeployError(f"The new {NAME} cannot be imported: {asked.stderr.strip()[-500:]}")
    if said[1] != "True":
        raise DeployError(f"The new {NAME} was built without OpenSSL: install libssl-dev, build it again.")


def needs_of(name: str, binary: bytes) -> str:
    """The oldest glibc and the libraries of OpenSSL with which it can be loaded, as its symbols say."""
    symbols = re.findall(rb"GLIBC_(\d+(?:\.\d+)+)", binary)
    versions = sorted({tuple(map(int, found.split(b"."))) for found in symbols})
    libraries = sorted(set(re.findall(rb"lib(?:ssl|crypto)\.so\.\d+", binary)))
    lines = [
        f"wheel: {name}",
        f"glibc: {'.'.join(map(str, versions[-1]))} or newer" if versions else "glibc: any",
        f"OpenSSL: {', '.join(each.decode() for each in libraries) or 'none'}",
    ]
    return "\n".join(lines) + "\n"
