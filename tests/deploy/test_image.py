"""The image of the container file, built without an engine on a bare root of Debian. The site runs from it,
not as root, and writes to its volumes alone."""

import os
import subprocess
from pathlib import Path

import pytest

from deploy.services.ports import free_ports
from tests import environment
from tests.deploy.test_bare_root import bootstrapped
from tests.deploy.test_containers import CONTAINERS
from tests.deploy.test_release import built

pytestmark = pytest.mark.night

# As an engine starts it: read-only but for the volume and /tmp.
CONTAINER = """
set -e
mount --bind "$IMAGE" "$IMAGE"
mount -t tmpfs -o mode=1777 tmpfs "$IMAGE/tmp"
mount -t tmpfs -o uid=10001,gid=10001,mode=700 tmpfs "$IMAGE/var/lib/ma"
mount -t proc proc "$IMAGE/proc"
mount --bind /dev "$IMAGE/dev"
mount -o remount,ro,bind "$IMAGE"
exec chroot --userspec=10001:10001 "$IMAGE" sh -c "$INSIDE"
"""
INSIDE = """
cd /var/lib/ma
! touch /etc/x 2>/dev/null || exit 3
ma migrate --noinput >/dev/null && ma collectstatic --noinput >/dev/null || exit 4
kma --version
ma web & web=$!
python3 - <<'END'
import os, time, urllib.request
url = f"http://127.0.0.1:{os.environ['MA_PORT']}/readyz"
for attempt in range(240):
    try:
        print(urllib.request.urlopen(url, timeout=5).read().decode().strip())
        break
    except OSError:
        time.sleep(0.25)
END
kill $web
wait $web
"""


def image_of(root: Path, dist: Path, folder: Path) -> Path:
    """Where its files are. The folder keeps all that buildah writes."""
    buildah = ["buildah", "--root", str(folder / "images"), "--runroot", str(folder / "run")]

    def run(*arguments: str) -> str:
        environ = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
        return subprocess.check_output([*buildah, *arguments], text=True, env=environ).strip()

    base = run("from", "scratch")
    run("add", "--quiet", base, str(root), "/")
    run("commit", "--quiet", base, "localhost/base")
    context = folder / "context"
    context.mkdir()
    dist.rename(context / "dist")
    run(
        "build", "--quiet", "--pull-never", "--build-arg", "BASE=localhost/base", "--tag", "localhost/ma",
        "--file", str(CONTAINERS / "Containerfile"), str(context),
    )  # fmt: skip
    return Path(run("mount", run("from", "--pull-never", "localhost/ma")))


def started(image: Path) -> str:
    (port,) = free_ports(1)
    data = Path("/var/lib/ma")
    site = {name: value for name, value in environment.values(data).items() if name.startswith("MA_")}
    site |= {"MA_PORT": str(port), "MA_HOST": "127.0.0.1", "HOME": str(data)}
    site["PATH"] = f"/opt/ma/bin:{os.defpath}:/usr/sbin:/sbin"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", CONTAINER],
        env={**site, "IMAGE": str(image), "INSIDE": INSIDE}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_site_runs_from_the_image_without_root_on_a_read_only_root(
    child_processes: None, tmp_path: Path
) -> None:
    bootstrapped(tmp_path / "root", "bookworm")
    image = image_of(tmp_path / "root", built(tmp_path, 0o022), tmp_path)
    try:
        assert started(image).splitlines()[-1] == "ok"
    finally:
        subprocess.run(["umount", "--recursive", tmp_path / "images" / "overlay"], check=True)
