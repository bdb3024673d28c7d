"""`python -m tests.client_against HOST:PORT [PYTEST-OPTION...]`: the tests of the reference client and of the Streams
runtime against a broker that runs, such as an Apache Kafka: producer, transactions, consumer, groups, admin, streams.

They are those of tests/clients/test_reference_*.py, which `make test` runs at our own broker in virtual time. Topics,
groups and users have names that nobody else has; topics and groups are left behind. Rebalances take as long as the
broker's `group.initial.rebalance.delay.ms` says. With `-k streams` it is the runtime only.
"""

import socket
import sys
from pathlib import Path

import pytest

_CONNECT_TIMEOUT_S = 5.0


def main(arguments: list[str]) -> int:
    """Exit codes: pytest's; 1 where nobody listens, 2 for a wrong usage."""
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
