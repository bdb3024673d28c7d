"""What a handler knows of who sent a request."""

import pytest

from tests.support.virtual_broker import VirtualBroker


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        pytest.param("127.0.0.1:4711", "/127.0.0.1", id="IPv4"),
        pytest.param("::1:4711", "/0:0:0:0:0:0:0:1", id="IPv6, whose zeros Java prints"),
        pytest.param("2001:db8::ff00:42:8329:4711", "/2001:db8:0:0:0:ff00:42:8329", id="IPv6 with zeros within"),
        pytest.param("fe80::1%eth0:4711", "/fe80:0:0:0:0:0:0:1%eth0", id="IPv6 of one interface"),
        pytest.param("?", "/", id="nobody knows"),
    ],
)
def test_a_client_s_host_is_printed_as_java_does(peer: str, expected: str) -> None:
    connection = VirtualBroker().client().connection
    connection.peer = peer
    assert connection.ctx.session.client_host == expected
