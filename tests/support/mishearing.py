"""Replaced or lost responses of a producer, on any broker.

    mishear(producer, "EndTxn", LOST)                                       # the first response is lost
    mishear(producer, "Produce", ErrorCode.REQUEST_TIMED_OUT, None, LOST)   # the second response is unchanged

The broker has processed the request, so a test can leave a client in doubt on brokers without faults. Replaced
responses are delayed, so that more requests can be in flight meanwhile.
"""

from functools import partial
from typing import Final

from sluice.client.network.in_flight import Exchange, OnComplete, Request
from sluice.client.producer import Producer
from sluice.protocol.apis.produce import ProduceResponse
from sluice.protocol.errors import ErrorCode

LOST: Final = "lost"
LATE_MS = 20

Heard = ErrorCode | str | None


def mishear(producer: Producer, api: str, *heard: Heard) -> None:
    """Replace the producer's next responses of one API.

    `heard` has a lost connection, an error code for every partition (only Produce), or None for the real response.
    """
    following = iter(heard)
    network = producer._network
    send = network.client.send

    def misheard(node_id: int, request: Request, on_complete: OnComplete, now_ms: float) -> Exchange:
        what = next(following, None) if request.api.name == api else None
        if what is None:
            return send(node_id, request, on_complete, now_ms)

        def complete(exchange: Exchange) -> None:
            _mishear(exchange, what)
            network.clock.call_at(exchange.received_ms, partial(on_complete, exchange))
            network.clock.call_at(exchange.received_ms, network.wakeup)

        return send(node_id, request, complete, now_ms)

    network.client.send = misheard  # type: ignore[method-assign]  # for one test, and one producer


def _mishear(exchange: Exchange, what: ErrorCode | str) -> None:
    exchange.received_ms += LATE_MS
    if what == LOST:
        exchange.response, exchange.disconnected = None, True
        return
    assert isinstance(what, ErrorCode)
    assert isinstance(exchange.response, ProduceResponse), f"{exchange.api.name} has no error codes to replace"
    for topic in exchange.response.responses:
        for partition in topic.partition_responses:
            partition.error_code, partition.base_offset = what, -1
