"""Ordered scripts: each brings one bug of an application to light, by holding a request until another client has moved.

A script starts instances of an application (shop.py, Shop.java), and returns what is wrong at the end, else "".
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from confluent_kafka import Consumer, TopicPartition

from sluice import SyncBroker
from sluice.errors import WaitTimeoutError
from sluice.faults import Hold

from .instances import Instance

# Starts an instance with a client id.
Start = Callable[[str], Instance]
# Until a step that the fixed version never does.
_NEVER_S = 4.0
_WITHIN_S = 30.0


def consume(broker: SyncBroker, front: SyncBroker, start: Start) -> str:
    """An application commits an order, and is killed before it has processed it."""
    broker.client().send("orders", "one pizza")
    with front.faults.add(Hold(when="after"), api="OffsetCommit", client_id="shop", times=1) as commit:
        shop = start("shop")
        front.wait_for(commit, timeout_s=_WITHIN_S)
        shop.kill()
    broker.client().send("orders", "end")
    second = start("shop")
    second.wait_for("processed end")
    done = Counter(shop.lines + second.lines)
    return "" if done["processed one pizza"] else "an order was not processed"


def send(broker: SyncBroker, front: SyncBroker, start: Start) -> str:
    """The response of an application's Produce request is lost, and it sends the bill again."""
    with front.faults.add(Hold(when="after"), api="Produce", client_id="shop", times=1) as produce:
        shop = start("shop")
        front.wait_for(produce, timeout_s=_WITHIN_S)
        with suppress(WaitTimeoutError):  # the second has a response
            front.wait_for("Request", api="Produce", client_id="shop", timeout_s=_NEVER_S)
        produce.release()
        shop.wait()
    return _repeated(broker)


def write(broker: SyncBroker, front: SyncBroker, start: Start) -> str:
    """The Produce request of a writer reaches the broker after the next writer has taken over."""
    with front.faults.add(Hold(), api="Produce", client_id="first", times=1) as produce:
        first = start("first")
        front.wait_for(produce, timeout_s=_WITHIN_S)
        start("second").wait()
        produce.release()
        first.wait()
    return _repeated(broker)


def forward(broker: SyncBroker, front: SyncBroker, start: Start) -> str:
    """An application is stopped while its producer has bills in the buffer whose orders it has committed."""
    broker.client().send("orders", "one pizza")
    with front.faults.add(Hold(), api="Produce", client_id="shop") as produce:
        shop = start("shop")
        front.wait_for(produce, timeout_s=_WITHIN_S)
        broker.client().send("orders", "two pizzas")
        with suppress(WaitTimeoutError):
            front.wait_for("Request", api="OffsetCommit", client_id="shop", times=2, timeout_s=_NEVER_S)
        shop.stop()
    broker.client().send("orders", "end")
    start("shop")
    lost = {"one pizza", "two pizzas"} - set(_bills(broker, until="end"))
    return f"no bill for {len(lost)} orders" if lost else ""


SCRIPTS: Mapping[str, Callable[[SyncBroker, SyncBroker, Start], str]] = {
    "consume": consume,
    "send": send,
    "write": write,
    "forward": forward,
}


def _repeated(broker: SyncBroker) -> str:
    broker.client().send("bills", "end")
    bills = _bills(broker, until="end")
    return "" if len(bills) == 1 else f"{len(bills)} bills for one order"


def _bills(broker: SyncBroker, until: str) -> Sequence[str]:
    """Return the committed bills before the last one."""
    reader = Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
    )
    reader.assign([TopicPartition("bills", 0, 0)])
    bills: list[str] = []
    while until not in bills:
        record = reader.poll(_WITHIN_S)
        if record is None:
            raise WaitTimeoutError(f"after {_WITHIN_S:g} s: no bill {until}, got {bills}")
        bills.append((record.value() or b"").decode())
    reader.close()
    return bills[:-1]
