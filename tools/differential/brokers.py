"""Apache Kafka 4.4 and sluice as clusters of processes, with the same properties."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from sluice.__main__ import main
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from tests.support.apache_kafka import PROPERTIES, ApacheKafka, running
from tests.support.broker_process import CLEAN_ENVIRONMENT, overrides
from tests.support.ports import free_ports
from tests.support.wire import WireClient
from tools.differential.case import Layout

_START_TIMEOUT_S = 120
_PROCESSES = get_context("forkserver")
_PROCESSES.set_forkserver_preload([__name__, "sluice.cli.serve.run"])


def use_first_producer_id(address: str) -> None:
    """Request producer id 0 of a new cluster: the masks cannot tell it from a field without a value."""
    end = time.monotonic() + _START_TIMEOUT_S
    with WireClient(address) as client:
        while client.call(InitProducerIdRequest(transactional_id=None), 5).error_code:
            assert time.monotonic() < end, "no producer id"
            time.sleep(0.1)


class Sluice:
    """`sluice serve` as Kafka 4.4, in memory or on disk.

    Its processes are forks of one that has imported what they need, which saves 0.2 s of CPU time each.
    """

    def __init__(self, layout: Layout, folder: Path, *, on_disk: bool) -> None:
        first, *_ = free_ports(layout.brokers)
        self._log = folder / "sluice.log"
        self._arguments = [
            *("--as", "kafka-4.4", "--port", str(first), "--admin-port", "0"),
            *("--brokers", str(layout.brokers)),
            *(["--racks", ",".join(layout.racks)] if layout.racks else []),
            *(["--data-dir", str(folder / "data")] if on_disk else []),
            *overrides("node.id=1", f"sluice.features={','.join(layout.features)}", *PROPERTIES, *layout.properties),
        ]
        self._process = self._start()
        self.addresses = {node: f"127.0.0.1:{first + node - 1}" for node in range(1, layout.brokers + 1)}

    def restart(self, *, kill: bool = False) -> None:
        self.stop(kill=kill)
        self._process = self._start()

    def stop(self, *, kill: bool = False) -> None:
        if kill:
            self._process.kill()
        else:
            self._process.terminate()
        self._process.join()

    def _start(self) -> ForkServerProcess:
        """Return a process that is ready."""
        stdout, of_process = _PROCESSES.Pipe(duplex=False)
        process = _PROCESSES.Process(target=_serve, args=(self._arguments, self._log, of_process), daemon=True)
        process.start()
        of_process.close()
        with open(stdout.fileno(), closefd=False) as lines:
            assert lines.readline().startswith("ready "), self._log.read_text()
        stdout.close()
        return process


def _serve(arguments: list[str], log: Path, stdout: Connection) -> None:
    """Run `sluice serve` in this process."""
    with log.open("ab") as stderr:
        os.dup2(stderr.fileno(), sys.stderr.fileno())
    os.dup2(stdout.fileno(), sys.stdout.fileno())
    os.environ.clear()
    os.environ.update(CLEAN_ENVIRONMENT)
    sys.argv = ["sluice", "serve", *arguments]
    main()


@contextmanager
def apache_kafka(layout: Layout, folder: Path) -> Iterator[ApacheKafka]:
    given = ApacheKafka(
        folder, layout.brokers, properties=layout.properties, racks=layout.racks, features=layout.features
    )
    with running(given) as cluster:
        use_first_producer_id(cluster.bootstrap)
        yield cluster


@contextmanager
def sluice(layout: Layout, folder: Path, *, on_disk: bool) -> Iterator[Sluice]:
    cluster = Sluice(layout, folder, on_disk=on_disk)
    try:
        use_first_producer_id(cluster.addresses[1])
        yield cluster
    finally:
        cluster.stop(kill=True)
