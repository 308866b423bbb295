"""Debian's Prometheus, on a port and in a folder of its own; ended by its pid."""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
import yaml

from deploy.config import REPOSITORY
from deploy.services.ports import free_ports

MONITORING = REPOSITORY / "deploy" / "monitoring"


@dataclass(frozen=True)
class Prometheus:
    url: str
    log: Path

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that it returns now; an expression that is refused fails the test."""
        answer = requests.get(f"{self.url}/api/v1/query", params={"query": expression}, timeout=30).json()
        assert answer["status"] == "success", f"{expression}: {answer}"
        found: list[dict[str, Any]] = answer["data"]["result"]
        return found

    def is_ready(self) -> bool:
        try:
            return requests.get(f"{self.url}/-/ready", timeout=5).ok
        except requests.ConnectionError:
            return False


@contextmanager
def prometheus(folder: Path, targets: Mapping[str, Sequence[str]], token: Path) -> Iterator[Prometheus]:
    """With the configuration of deploy/monitoring, but these targets by job, and each second."""
    config = yaml.safe_load((MONITORING / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(MONITORING / "rules.yml")]
    jobs = {job["job_name"]: job for job in config["scrape_configs"]}
    assert jobs.keys() == targets.keys()
    for name, job in jobs.items():
        job["authorization"]["credentials_file"] = str(token)
        job["static_configs"] = [{"targets": list(targets[name])}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_ports(1)[0]}"
    log = folder / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder,
        )  # fmt: skip
        try:
            yield Prometheus(f"http://{address}", log)
        finally:
            process.terminate()
            process.wait(30)
