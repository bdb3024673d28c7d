"""Debian's Prometheus with the deployed configuration, except for the broker's address."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import yaml

from tests.support import skips
from tests.support.ports import free_ports

DEPLOY = Path(__file__).parents[2] / "deploy"
MISSING = skips.program("Prometheus", "apt-get install --no-install-recommends prometheus")
_STARTS_WITHIN_S, _ANSWERS_WITHIN_S = 30, 10


def is_there(tool: str = "prometheus") -> bool:
    """Return whether the tool is on the path."""
    return shutil.which(tool) is not None


class Prometheus:
    """A running Prometheus, queried over its HTTP API."""

    def __init__(self, address: str) -> None:
        self._address = address

    def query(self, path: str, **query: object) -> Any:
        """Return the data of a response."""
        with urlopen(f"http://{self._address}/api/v1/{path}?{urlencode(query)}", timeout=_ANSWERS_WITHIN_S) as response:
            return json.load(response)["data"]

    def now(self, query: str) -> dict[str, float]:
        """Return the current series of a query, by label."""
        found = self.query("query", query=query)["result"]
        return {json.dumps(series["metric"]): float(series["value"][1]) for series in found}


@contextmanager
def running_prometheus(folder: Path, admin: str, token: str) -> Iterator[Prometheus]:
    """Run a Prometheus that scrapes the broker at `admin` each second."""
    address = f"127.0.0.1:{free_ports(1)[0]}"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "token").write_text(token)
    config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(DEPLOY / name) for name in config["rule_files"]]
    (job,) = config["scrape_configs"]
    job["authorization"]["credentials_file"] = str(folder / "token")
    job["static_configs"] = [{"targets": [admin.removeprefix("http://")]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    command = ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    log = (folder / "log").open("wb")
    with log, subprocess.Popen([*command, f"--web.listen-address={address}"], stdout=log, stderr=log) as process:
        try:
            _await_ready(address, process, folder / "log")
            yield Prometheus(address)
        finally:
            process.kill()


def _await_ready(address: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = monotonic() + _STARTS_WITHIN_S
    while monotonic() < end and process.poll() is None:
        try:
            with urlopen(f"http://{address}/-/ready", timeout=1):
                return
        except OSError:
            sleep(0.05)
    raise AssertionError(f"Prometheus is not ready: {log.read_text()}")
