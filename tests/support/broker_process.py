"""`sluice serve` or `proxy` as a separate process, for tests that need real sockets, real time or real clients."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.request import Request, urlopen

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

# The environment of the test run must not configure the broker.
CLEAN_ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith("KAFKA_")}
# For pytest in another process: its tests use none of these plugins, which take most of the time of its start.
FAST_PYTEST = {"PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:schemathesis"}
STOP_TIMEOUT_S = 120  # ends a hung broker


class BrokerProcess:
    """A running broker: its addresses, logs and exit."""

    def __init__(self, log: Path, *args: str, command: str = "serve", env: Mapping[str, str] | None = None) -> None:
        """Start `sluice serve` or `proxy` with these arguments, and wait until it is ready; it logs to `log`."""
        self._log = log
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "sluice", command, *args],
                stdout=subprocess.PIPE,
                stderr=stderr,
                stdin=subprocess.DEVNULL,
                env=CLEAN_ENVIRONMENT | dict(env or {}),
            )
        assert self.process.stdout is not None
        self.first_line = self.process.stdout.readline().decode()
        if not self.first_line:
            self.kill()
            raise AssertionError(f"the broker did not start: {self.log_text()}")
        self.ready: dict[str, Any] = json.loads(self.first_line.removeprefix("ready "))
        self.bootstrap: str = self.ready["bootstrap"]

    @cached_property
    def admin(self) -> str:
        """The address of the admin port, which has loaded its HTTP stack, so that no command waits for that."""
        return with_http_stack(self.ready["admin"])

    def log_text(self) -> str:
        return self._log.read_text()

    def get(self, path: str) -> str:
        """Return the response of the admin port."""
        with urlopen(self.admin + path, timeout=STOP_TIMEOUT_S) as response:
            content: bytes = response.read()
        return content.decode()

    def post(self, path: str, body: Mapping[str, object] | None = None, token: str = "") -> Any:
        """Return the response of the admin port to a JSON body."""
        headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
        request = Request(self.admin + path, json.dumps(body or {}).encode(), headers, method="POST")
        with urlopen(request, timeout=STOP_TIMEOUT_S) as response:
            return json.load(response)

    def delete(self, path: str) -> None:
        urlopen(Request(self.admin + path, method="DELETE"), timeout=STOP_TIMEOUT_S).close()

    def metrics(self) -> dict[str, Metric]:
        """Return the metric families by the parser's names: counters without `_total`."""
        return {family.name: family for family in text_string_to_metric_families(self.get("/metrics"))}

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, float, str]:
        """Send a signal and wait; return exit code, duration in seconds, and the remaining stdout."""
        started = monotonic()
        self.process.send_signal(number)
        try:
            stdout, _ = self.process.communicate(timeout=STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the broker does not stop: {self.log_text()}") from None
        return self.process.returncode, monotonic() - started, stdout.decode()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def with_http_stack(admin: str) -> str:
    """Make the first request to an admin port, however long its broker needs to respond; return the address."""
    connection = HTTPConnection(admin.removeprefix("http://"))
    connection.request("GET", "/healthz")
    connection.getresponse().read()
    connection.close()
    return admin


@contextmanager
def running_broker(log: Path, *args: str, env: Mapping[str, str] | None = None) -> Iterator[BrokerProcess]:
    """Run a broker on free loopback ports."""
    with _running("serve", log, *args, env=env) as broker:
        yield broker


@contextmanager
def running_proxy(log: Path, upstream: str, *args: str) -> Iterator[BrokerProcess]:
    """Run a proxy in front of these bootstrap servers, on free loopback ports."""
    with _running("proxy", log, "--upstream", upstream, *args) as proxy:
        yield proxy


@contextmanager
def _running(command: str, log: Path, *args: str, env: Mapping[str, str] | None = None) -> Iterator[BrokerProcess]:
    ports = [] if "--port" in args else ["--port", "0"]
    ports += [] if "--admin-port" in args else ["--admin-port", "0"]
    broker = BrokerProcess(log, *ports, *args, command=command, env=env)
    try:
        yield broker
    finally:
        if broker.process.returncode is None:
            broker.kill()


def overrides(*properties: str) -> list[str]:
    """Return `key=value` pairs as arguments of `sluice serve`."""
    return [argument for item in properties for argument in ("--override", item)]
