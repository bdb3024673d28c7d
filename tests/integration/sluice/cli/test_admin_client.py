"""Admin requests of all commands: addresses, and connection errors."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from socket import create_server
from threading import Thread
from urllib.request import Request, urlopen

import pytest
from click.testing import CliRunner

from sluice.cli import admin_client
from sluice.cli.admin_client import admin_address
from sluice.cli.main import cli
from sluice.errors import ConfigError
from tests.support.broker_process import running_broker

ASKS = {
    "explain": ["explain", "shop", "--admin"],
    "faults": ["faults", "list", "--admin"],
    "healthcheck": ["healthcheck", "--admin"],
    "journal": ["journal", "tail", "--admin"],
    "journal with --follow": ["journal", "tail", "--follow", "--admin"],
    "run": ["run", "slow-broker", "--against"],
    "top": ["top", "--once", "--admin"],
}
every_command = pytest.mark.parametrize("words", ASKS.values(), ids=ASKS)


class _Stranger(BaseHTTPRequestHandler):
    """A web server that is no broker."""

    paths: list[str]

    def do_GET(self) -> None:
        self.paths.append(self.path)
        self.send_error(404)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def stranger() -> Iterator[HTTPServer]:
    _Stranger.paths = []
    with HTTPServer(("127.0.0.1", 0), _Stranger) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def error_of(words: list[str], address: str, exit_code: int) -> str:
    result = CliRunner().invoke(cli, [*words, address])
    assert (result.exit_code, result.stdout) == (exit_code, ""), result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1, "the error is one line"
    return result.stderr.removeprefix("Error: ").rstrip("\n")


ADDRESSES_WITH_A_SLASH = {
    "a name": "http://localhost:9644",
    "an IPv6 address with TLS": "https://[::1]:9644",
    "a path behind a proxy": "http://broker/sluice",
}


@pytest.mark.parametrize("address", ADDRESSES_WITH_A_SLASH.values(), ids=ADDRESSES_WITH_A_SLASH)
def test_address_may_end_with_a_slash(address: str) -> None:
    assert admin_address(address) == admin_address(f"{address}/") == address


INVALID_ADDRESSES = {
    "without http": "localhost:9644",
    "another protocol": "ftp://localhost",
    "no host": "http://",
    "a port that is not a number": "http://localhost:x",
    "an invalid port": "http://localhost:99999",
    "an incomplete IPv6 address": "http://[::1",
    "a space": "http://a host",
    "a line break": "http://host\r\nX: y",
    "an invalid character": "http://h\u00f6st",
}


@pytest.mark.parametrize("address", INVALID_ADDRESSES.values(), ids=INVALID_ADDRESSES)
def test_invalid_address_is_rejected(address: str) -> None:
    with pytest.raises(ConfigError) as refused:
        admin_address(address, "--against")
    shown = address if address.isprintable() else repr(address)
    assert str(refused.value) == f"--against: expected http://HOST:PORT or https://HOST:PORT, got {shown}"


@every_command
def test_invalid_address_is_wrong_usage(words: list[str]) -> None:
    assert (
        error_of(words, "http://[::1", 2)
        == f"{words[-1]}: expected http://HOST:PORT or https://HOST:PORT, got http://[::1"
    )


@every_command
def test_address_without_a_listener_is_reported(words: list[str]) -> None:
    assert error_of(words, "http://127.0.0.1:1", 1) == (
        "http://127.0.0.1:1: no connection: Connection refused. Start a broker with sluice serve, or set --admin."
    )


@every_command
def test_response_of_another_web_server_is_reported_in_one_line(words: list[str], stranger: HTTPServer) -> None:
    address = f"http://127.0.0.1:{stranger.server_port}"
    assert error_of(words, f"{address}/", 1) == f"{address}: 404: Not Found"
    assert [path[:2] for path in _Stranger.paths] in (["/a"], ["/h"]), "one slash between address and path"


@pytest.fixture(scope="module")
def kafka_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log: Path = tmp_path_factory.mktemp("admin") / "log"
    with running_broker(log) as broker:
        yield f"http://{broker.bootstrap}"


@every_command
def test_kafka_port_is_reported(words: list[str], kafka_port: str) -> None:
    expected = f"{kafka_port}: expected the admin HTTP port, got a port of the Kafka protocol"
    assert error_of(words, kafka_port, 1) == expected


def test_port_that_closes_connections_is_not_reported_as_kafka() -> None:
    with create_server(("127.0.0.1", 0)) as server:

        def close_connections() -> None:
            for _ in range(2):  # the request, and the check for the Kafka protocol
                connection, _address = server.accept()
                connection.recv(1 << 16)
                connection.close()

        thread = Thread(target=close_connections)
        thread.start()
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        assert error_of(ASKS["explain"], address, 1) == f"{address}: Remote end closed connection without response"
        thread.join()


@every_command
def test_silent_port_times_out(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert admin_client.TIMEOUT_S == 5.0
    timeouts_s: list[float] = []

    def impatient(request: Request, timeout: float) -> object:
        timeouts_s.append(timeout)
        return urlopen(request, timeout=0.05)

    monkeypatch.setattr(admin_client, "urlopen", impatient)
    with create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        reported = error_of(words, address, 1)
    (timeout_s,) = timeouts_s
    assert timeout_s <= 5.0
    assert reported == f"{address}: no response within {timeout_s:g} s"
