"""Sockets bound to real addresses."""

import pytest

from sluice.broker.network.socket_server import bind
from sluice.errors import SluiceError


def test_port_in_use_raises_an_error_with_its_address() -> None:
    with bind("127.0.0.1", 0, 1) as first:
        port = first.getsockname()[1]
        with pytest.raises(SluiceError, match=rf"^cannot listen on 127\.0\.0\.1:{port}: Address already in use$"):
            bind("127.0.0.1", port, 1)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "256.1.1.1", "a" * 300, "198.51.100.7"])
def test_unavailable_address_raises_a_one_line_error(host: str) -> None:
    with pytest.raises(SluiceError) as error:
        bind(host, 0, 1)
    assert str(error.value).startswith(f"cannot listen on {host}:0: ")
    assert "\n" not in str(error.value)
