"""Errors of fault rules in a proxy have the same bytes as on a broker, in every API that names topics."""

from collections.abc import Iterator

import pytest

from sluice.broker.exchange.registry import HANDLERS
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.entities import entities_of
from sluice.protocol.error_codes import codes_of
from sluice.protocol.types import TOPIC_NAME
from tests.support.records import produce
from tests.support.topic_requests import USES, Target, Use
from tests.support.virtual_broker import VirtualBroker
from tests.support.virtual_proxy import VirtualProxy

NO_CREATION = "auto.create.topics.enable=false"
LONGEST_WAIT_MS = 2_000
KEYS = {API_KEYS[key].name: key for key in HANDLERS}


def started(*, proxied: bool) -> VirtualBroker:
    broker = VirtualBroker(NO_CREATION)
    broker.topic("t", partitions=2)
    broker.client().call(produce(9), 9)
    return VirtualProxy(upstream=broker) if proxied else broker


def rules(use: Use) -> Iterator[dict[str, object]]:
    """Yield a rule for an error at each level of the responses of an API."""
    levels = {level: code for code, level in codes_of(KEYS[use.api]).items()}
    for code in levels.values():
        for when in ("before", "after"):
            action = {"kind": "error", "code": int(code), "when": when}
            names_topic = TOPIC_NAME in entities_of(KEYS[use.api])  # besides in resources
            yield {"action": action, "api": use.api, **({"topic": "t"} if names_topic else {})}


def response(use: Use, version: int, rule: dict[str, object], *, proxied: bool) -> tuple[bytes, bool, int]:
    broker = started(proxied=proxied)
    broker.client().call(MetadataRequest(topics=None), 12)  # the proxy learns the topic's id
    fault = broker.cluster_server.faults.add(rule)
    client = broker.client()
    received = bytearray()
    client.on_bytes = received.extend
    target = Target("t", broker.partition().topic.topic_id, "key")
    client.send(use.build(version, target), version)
    broker.advance(LONGEST_WAIT_MS)
    assert fault.enabled, fault.problem
    port = broker.server.endpoints[0].port.to_bytes(4)
    return bytes(received).replace(port, bytes(4)), client.is_open, fault.hits


@pytest.mark.parametrize("use", USES, ids=[f"{use.api} {use.title}".strip() for use in USES])
def test_error_is_that_of_a_broker(use: Use) -> None:
    for version in {use.forms()[0], use.forms()[-1]}:
        for rule in rules(use):
            of_broker, of_proxy = (response(use, version, rule, proxied=proxied) for proxied in (False, True))
            assert of_proxy == of_broker, (version, rule)
