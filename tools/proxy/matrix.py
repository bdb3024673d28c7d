"""Run the client matrix against Apache Kafka through `sluice proxy`, and search for leaked addresses.

`python -m tools.proxy.matrix` runs all cells: one and three brokers, in plain text and with SASL_SSL (campaign
`proxy-clients`). Options choose some of them, or no proxy.
"""

import json
import os
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import click

from tests.clients.conftest import QUICK_GROUPS
from tests.clients.login import VARIABLE, Login
from tests.support.apache_kafka import BUILD, ApacheKafka, running, why_not
from tests.support.broker_process import BrokerProcess, overrides
from tests.support.certificates import certificates
from tests.support.ports import free_ports
from tools.proxy.sniffer import Leaks, Relays, Sockets

ROOT = Path(__file__).parents[2]
# Each has its own host, so that an address shows whose it is.
UPSTREAM_HOST, PROXY_HOST, RELAY_HOST = "127.0.0.2", "127.0.0.1", "127.0.0.3"
USER, PASSWORD = "alice", "alice-secret"
# On a busy machine, heartbeats of brokers are late by seconds. After 9 s, the default, the controller fences a broker,
# whose partitions then have no leader.
_NEVER_FENCED = "broker.session.timeout.ms=600000"


class Security(Enum):
    """How clients, the proxy and the brokers are secured."""

    PLAIN = "in plain text"
    PASSED_THROUGH = "SASL_SSL, the clients authenticate with the cluster"
    ENDED = "SASL_SSL, the clients authenticate with the proxy"


class Cell(NamedTuple):
    brokers: int
    security: Security

    @property
    def is_secure(self) -> bool:
        return self.security is not Security.PLAIN

    def __str__(self) -> str:
        return f"{self.brokers} brokers, {self.security.value}"


CELLS = [Cell(brokers, security) for brokers in (1, 3) for security in Security]


class Place(NamedTuple):
    """Where clients connect, and what was found so far."""

    bootstrap: str
    login: Login | None
    relays: Relays | None = None
    sockets: Sockets | None = None

    def leaks(self) -> list[str]:
        return [*(self.relays.found if self.relays else ()), *(self.sockets.found if self.sockets else ())]


@contextmanager
def kafka_of(cell: Cell, folder: Path) -> Iterator[ApacheKafka]:
    cluster = ApacheKafka(
        folder,
        cell.brokers,
        properties=[*QUICK_GROUPS, _NEVER_FENCED],
        host=UPSTREAM_HOST,
        users={USER: PASSWORD} if cell.is_secure else None,
    )
    with running(cluster):
        yield cluster


def login_of(cell: Cell) -> Login | None:
    ca = str(certificates().ca)
    return Login("SASL_SSL", ca, "", "SCRAM-SHA-512", USER, PASSWORD) if cell.is_secure else None


def proxy_arguments(cell: Cell, folder: Path, host: str = PROXY_HOST) -> list[str]:
    """Return the arguments of a proxy whose ports stay the same, with TLS on both sides if the cell is secure."""
    first = free_ports(cell.brokers + 1)[0]
    arguments = ["--advertised-host", host]
    if not cell.is_secure:
        return [*arguments, "--port", str(first)]
    upstream = folder / "upstream.properties"
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="{USER}" password="{PASSWORD}";'
    lines = ("security.protocol=SASL_SSL", f"ssl.truststore.location={certificates().ca}", "sasl.mechanism=PLAIN")
    upstream.write_text("\n".join([*lines, f"sasl.jaas.config={login}\n"]))
    is_ended = cell.security is Security.ENDED
    listeners = [
        f"listeners={'SASL_SSL' if is_ended else 'SSL'}://{PROXY_HOST}:{first}",
        f"ssl.keystore.location={certificates().broker}",
    ]
    if is_ended:
        listeners += ["sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512", f"sluice.sasl.users={USER}:{PASSWORD}"]
    else:
        arguments += ["--sasl-passthrough"]
    return [*arguments, "--upstream-config", str(upstream), *overrides(*listeners)]


def contexts_of(cell: Cell) -> tuple[ssl.SSLContext, ssl.SSLContext] | None:
    """Return the TLS contexts of a relay, as a server and as a client."""
    if not cell.is_secure:
        return None
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(certificates().broker)
    return server, certificates().client_context()


@contextmanager
def _proxy(log: Path, upstream: str, *arguments: str) -> Iterator[BrokerProcess]:
    proxy = BrokerProcess(log, "--upstream", upstream, "--admin-port", "0", *arguments, command="proxy")
    try:
        yield proxy
    finally:
        proxy.kill()


@contextmanager
def proxied(cell: Cell, kafka: ApacheKafka, folder: Path) -> Iterator[Place]:
    """Run a proxy and relays in front of a cluster."""
    with ExitStack() as stack:
        arguments = proxy_arguments(cell, folder, RELAY_HOST)
        proxy = stack.enter_context(_proxy(folder / "proxy.log", kafka.bootstrap, *arguments))
        targets = [f"{PROXY_HOST}:{port_of(address)}" for address in proxy.ready["brokers"]]
        leaks = Leaks(UPSTREAM_HOST, RELAY_HOST, [port_of(target) for target in targets])
        relays = stack.enter_context(Relays(RELAY_HOST, targets, leaks, contexts_of(cell)))
        upstream = [port_of(address) for address in kafka.addresses.values()]
        allowed = [proxy.process.pid, *kafka.pids()]
        sockets = stack.enter_context(Sockets(UPSTREAM_HOST, upstream, allowed))
        yield Place(f"{RELAY_HOST}:{port_of(targets[0])}", login_of(cell), relays, sockets)


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def run_cell(cell: Cell, *, is_direct: bool, arguments: Sequence[str]) -> bool:
    """Run the matrix in one cell, print a line with the result and the leaks, and return whether all is well."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        kafka = stack.enter_context(kafka_of(cell, folder))
        if is_direct:
            place = Place(kafka.bootstrap, login_of(cell))
        else:
            place = stack.enter_context(proxied(cell, kafka, folder))
        outcomes = folder / "outcomes.json"
        login = json.dumps(place.login._asdict()) if place.login else ""
        subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-n", "2", "tests/clients/test_matrix.py"),
                *("--bootstrap", place.bootstrap, "--outcomes", str(outcomes), *arguments),
            ],
            cwd=ROOT,
            env=os.environ | {VARIABLE: login},
            check=False,
        )
        found = json.loads(outcomes.read_text())
        warnings = [] if is_direct else _unexpected_lines(folder / "proxy.log")
    way = "directly" if is_direct else "through the proxy"
    print(f"{cell}, {way}: {found['passed']} passed, {len(found['failed'])} failed, {len(found['skipped'])} skipped")
    if place.relays is not None:
        print(f"    {place.relays.connections} connections, {place.relays.received_bytes} bytes of responses")
    for line in [*found["failed"], *place.leaks(), *warnings]:
        print(f"    {line}")
    return not (found["failed"] or place.leaks() or warnings)


def _unexpected_lines(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if " INFO " not in line]


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--brokers", type=int, help="Only with this number of brokers.")
@click.option("--security", type=click.Choice([each.name for each in Security]), help="Only with this one.")
@click.option("--direct", is_flag=True, help="Without the proxy.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(brokers: int | None, security: str | None, direct: bool, arguments: tuple[str, ...]) -> None:
    """Run the client matrix; ARGUMENTS are those of pytest."""
    if (reason := why_not()) is not None:
        raise click.ClickException(f"{BUILD}: {reason}")
    cells = [cell for cell in CELLS if brokers in (None, cell.brokers) and security in (None, cell.security.name)]
    results = [run_cell(cell, is_direct=direct, arguments=arguments) for cell in cells]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
