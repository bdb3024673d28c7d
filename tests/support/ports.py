"""TCP ports of 127.0.0.1 that no concurrent test takes."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def refusing_address() -> Iterator[str]:
    """Yield an address that refuses connections: its port is held, but nothing listens on it."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{held.getsockname()[1]}"


def free_ports(number: int) -> range:
    """Return up to 8 consecutive free ports for brokers that stop and start again.

    The ports are below the system's range of ephemeral ports. The search starts at a number derived from the process id
    and continues far away, because concurrent processes have consecutive ids.
    """
    assert number <= 8, number
    for step in range(5_000):
        first = 10_000 + (os.getpid() + step * 1009) * 8 % 20_000
        ports = range(first, first + number)
        with ExitStack() as held:
            try:
                for port in ports:
                    held.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
        return ports
    raise RuntimeError(f"no {number} free consecutive ports")
