"""A broker in virtual time with the default configuration, a client of it, and a topic."""

import pytest

from sluice.broker.metadata.topic import Topic
from tests.support.virtual_broker import Client, VirtualBroker


@pytest.fixture
def broker() -> VirtualBroker:
    return VirtualBroker()


@pytest.fixture
def client(broker: VirtualBroker) -> Client:
    return broker.client()


@pytest.fixture
def topic(broker: VirtualBroker) -> Topic:
    """Topic t, with one partition."""
    return broker.topic()
