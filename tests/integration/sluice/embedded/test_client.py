"""Clients of a broker, used from other threads."""

import pytest

from sluice import SyncBroker
from sluice.client.errors import KafkaException


def test_client_works_from_any_thread() -> None:
    with SyncBroker() as broker:
        (written,) = broker.client("shop").send("orders", b"a")
        assert written.offset == 0
        assert [one.value for one in broker.client().receive("orders")] == [b"a"]
        with pytest.raises(KafkaException):
            broker.client().send("no topic", b"a")
