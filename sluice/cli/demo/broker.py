"""The demo's broker: a `sluice serve` process, which is stopped also after errors, and its /metrics."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from tempfile import TemporaryFile
from typing import IO
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from sluice.errors import SluiceError

_START_TIMEOUT_S = 20.0
# A broker stops within a second of SIGTERM.
_STOP_TIMEOUT_S = 2.0
# The first scrape loads the HTTP stack: a quarter of a second, or ten on an overloaded machine.
_SCRAPE_TIMEOUT_S = 60.0


class DemoBroker:
    def __init__(self, bootstrap: str, admin: str) -> None:
        self.bootstrap = bootstrap
        self.page = f"{admin}/"
        self._admin = admin

    async def scrape(self) -> "Scrape":
        return await asyncio.to_thread(self._scrape)

    def _scrape(self) -> "Scrape":
        try:
            with urlopen(f"{self._admin}/metrics", timeout=_SCRAPE_TIMEOUT_S) as answer:  # noqa: S310  (http, by `ready`)
                exposition = answer.read().decode()
        except OSError as error:
            raise SluiceError(f"cannot read the broker's metrics: {error}") from None
        return Scrape(exposition)


class Scrape:
    def __init__(self, exposition: str) -> None:
        self._values: dict[tuple[str, str, str], float] = {}
        for family in text_string_to_metric_families(exposition):
            for sample in family.samples:
                if sample.name in ("kafka_server_quota_byte_rate", "sluice_throttle_seconds_total"):
                    labels = sample.labels
                    client_id = labels.get("client_id") or labels.get("clientId", "")
                    self._values[sample.name, labels["resource"], client_id] = sample.value

    def byte_rate(self, kind: str, client_id: str) -> float:
        return self._values.get(("kafka_server_quota_byte_rate", kind, client_id), 0.0)

    def throttle_s(self, kind: str, client_id: str) -> float:
        return self._values.get(("sluice_throttle_seconds_total", kind, client_id), 0.0)


@asynccontextmanager
async def running_broker(overrides: Sequence[str]) -> AsyncIterator[DemoBroker]:
    """Run a broker on free ports, or raise SluiceError."""
    command = [sys.executable, "-m", "sluice", "serve", "--port", "0", "--admin-port", "0"]
    for override in overrides:
        command += ["--override", override]
    with TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=log, env=_environment()
        )
        try:
            yield await _ready(process, log)
        finally:
            await _stop(process)


def _environment() -> Mapping[str, str]:
    # A KAFKA_QUOTA_WINDOW_NUM set for another purpose would change the demo.
    return {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}


async def _ready(process: asyncio.subprocess.Process, log: IO[bytes]) -> DemoBroker:
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), _START_TIMEOUT_S)
    except TimeoutError:
        raise SluiceError(f"the broker was not ready within {_START_TIMEOUT_S:.0f} s") from None
    word, _, addresses = line.decode().partition(" ")
    if word != "ready":
        log.seek(0)
        lines = log.read().decode(errors="replace").strip().splitlines()
        raise SluiceError("the broker did not start" + (f": {lines[-1]}" if lines else ""))
    ready = json.loads(addresses)
    return DemoBroker(ready["bootstrap"], ready["admin"])


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_TIMEOUT_S)
    except TimeoutError:
        pass
    finally:  # also if this wait is interrupted
        if process.returncode is None:
            process.kill()
            await process.wait()
