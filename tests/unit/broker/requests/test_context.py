"""The client's host in the context of a request."""

import pytest

from tests.support.virtual_broker import VirtualBroker

HOSTS = {
    "IPv4": ("127.0.0.1:4711", "/127.0.0.1"),
    "IPv6 with leading zeros": ("::1:4711", "/0:0:0:0:0:0:0:1"),
    "IPv6 with zeros inside": ("2001:db8::ff00:42:8329:4711", "/2001:db8:0:0:0:ff00:42:8329"),
    "IPv6 with a zone": ("fe80::1%eth0:4711", "/fe80:0:0:0:0:0:0:1%eth0"),
    "unknown address": ("?", "/"),
}


@pytest.mark.parametrize(("peer", "expected"), HOSTS.values(), ids=HOSTS)
def test_client_host_is_formatted_as_in_java(peer: str, expected: str) -> None:
    connection = VirtualBroker().client().connection
    connection.peer = peer
    assert connection.ctx.session.client_host == expected
