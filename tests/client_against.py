"""`python -m tests.client_against HOST:PORT [PYTEST-OPTION...]`: run the reference client's tests on a running broker.

The broker may be an Apache Kafka. The tests are tests/clients/test_reference_*.py, which `make test` runs on our own
broker in virtual time. Topics, groups and users have unique names; topics and groups are not deleted. Rebalances take
the broker's `group.initial.rebalance.delay.ms`. With `-k streams`, only the Streams runtime is tested.
"""

import socket
import sys
from pathlib import Path

import pytest

_CONNECT_TIMEOUT_S = 5.0


def main(arguments: list[str]) -> int:
    """Run the tests; return pytest's exit code, 1 if the broker is unreachable, or 2 for wrong arguments."""
    host, _, port = arguments[0].rpartition(":") if arguments else ("", "", "")
    if not host or not port.isdecimal():
        print("usage: python -m tests.client_against HOST:PORT [PYTEST-OPTION...]", file=sys.stderr)
        return 2
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        print(f"{arguments[0]} cannot be reached: {error}", file=sys.stderr)
        return 1
    files = sorted(str(path) for path in (Path(__file__).parent / "clients").glob("test_reference_*.py"))
    return pytest.main([*files, "--bootstrap", arguments[0], *arguments[1:]])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
