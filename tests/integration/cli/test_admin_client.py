"""The admin port as all commands ask it: at which addresses, and what they tell where it does not answer."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from click.testing import CliRunner

from sluice.cli.admin_client import admin_address
from sluice.cli.main import cli
from sluice.errors import ConfigError

ASKS = {
    "explain": ["explain", "shop", "--admin"],
    "faults": ["faults", "list", "--admin"],
    "healthcheck": ["healthcheck", "--admin"],
    "journal": ["journal", "tail", "--admin"],
    "journal that follows": ["journal", "tail", "--follow", "--admin"],
    "run": ["run", "slow-broker", "--against"],
    "top": ["top", "--once", "--admin"],
}
every_command = pytest.mark.parametrize("words", ASKS.values(), ids=ASKS)


class _Stranger(BaseHTTPRequestHandler):
    """A web server that knows nothing of brokers."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_error(404)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def stranger() -> Iterator[HTTPServer]:
    _Stranger.asked = []
    with HTTPServer(("127.0.0.1", 0), _Stranger) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def told(words: list[str], address: str, exit_code: int) -> str:
    result = CliRunner().invoke(cli, [*words, address])
    assert (result.exit_code, result.stdout) == (exit_code, ""), result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1, "what went wrong is one line"
    return result.stderr.removeprefix("Error: ").rstrip("\n")


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("http://localhost:9644", id="a name"),
        pytest.param("https://[::1]:9644", id="an address of IPv6, with TLS"),
        pytest.param("http://broker/sluice", id="a path of a proxy's"),
    ],
)
def test_an_address_may_end_with_a_slash(address: str) -> None:
    assert admin_address(address) == admin_address(f"{address}/") == address


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("localhost:9644", id="without http"),
        pytest.param("ftp://localhost", id="another protocol"),
        pytest.param("http://", id="no host"),
        pytest.param("http://localhost:x", id="a port that is no number"),
        pytest.param("http://localhost:99999", id="a port that is none"),
        pytest.param("http://[::1", id="half an address of IPv6"),
        pytest.param("http://a host", id="a space"),
        pytest.param("http://host\r\nX: y", id="a line end"),
        pytest.param("http://h\u00f6st", id="a letter that no address has"),
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError) as refused:
        admin_address(address, "--against")
    assert str(refused.value) == f"--against: {address}: must be http://HOST:PORT or https://HOST:PORT"


@every_command
def test_an_address_that_is_none_is_wrong_usage(words: list[str]) -> None:
    assert told(words, "http://[::1", 2) == f"{words[-1]}: http://[::1: must be http://HOST:PORT or https://HOST:PORT"


@every_command
def test_where_nobody_listens_there_is_no_connection(words: list[str]) -> None:
    assert told(words, "http://127.0.0.1:1", 1) == "http://127.0.0.1:1: no connection: Connection refused"


@every_command
def test_what_another_web_server_says_is_told_in_a_line(words: list[str], stranger: HTTPServer) -> None:
    address = f"http://127.0.0.1:{stranger.server_port}"
    assert told(words, f"{address}/", 1) == f"{address}: 404: Not Found"
    assert [path[:2] for path in _Stranger.asked] in (["/a"], ["/h"]), "one slash between the address and the path"
