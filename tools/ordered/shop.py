"""An application with librdkafka, in a naive and a fixed version: `shop.py MODE VERSION BOOTSTRAP CLIENT_ID`.

Shop.java is the same with the Java client. The modes are those of scripts.py.
"""

import sys
from functools import partial

from confluent_kafka import Consumer, KafkaException, Message, Producer

_WITHIN_S = 30.0
_RETRIES = 5


def main(mode: str, version: str, bootstrap: str, client_id: str) -> None:
    client: dict[str, str | int] = {"bootstrap.servers": bootstrap, "client.id": client_id, "log_level": 0}
    MODES[mode](client, version == "fixed")


def consume(client: dict[str, str | int], is_fixed: bool) -> None:
    """Process orders; the naive version commits first."""
    consumer = _consumer(client)
    while True:
        order = _next(consumer)
        if not is_fixed:
            consumer.commit(message=order, asynchronous=False)
        print("processed", (order.value() or b"").decode(), flush=True)
        if is_fixed:
            consumer.commit(message=order, asynchronous=False)


def send(client: dict[str, str | int], is_fixed: bool) -> None:
    """Send a bill; the naive version sends it again itself after an error."""
    if is_fixed:
        producer = Producer({**client, "enable.idempotence": True, "linger.ms": 0})
        producer.produce("bills", b"one pizza")
        producer.flush(_WITHIN_S)
        return
    producer = Producer({**client, "retries": 0, "message.timeout.ms": 500, "linger.ms": 0})
    for _ in range(_RETRIES):
        bills: list[Message] = []
        producer.produce("bills", b"one pizza", on_delivery=partial(_append, bills))
        producer.flush(_WITHIN_S)
        if bills[0].error() is None:
            return


def _append(bills: list[Message], _: object, bill: Message) -> None:
    bills.append(bill)


def write(client: dict[str, str | int], is_fixed: bool) -> None:
    """Write a bill as the only writer; the fixed version has a transactional id, which fences an earlier writer."""
    if not is_fixed:
        producer = Producer({**client, "linger.ms": 0})
        producer.produce("bills", b"one pizza")
        producer.flush(_WITHIN_S)
        return
    producer = Producer({**client, "transactional.id": "biller", "linger.ms": 0})
    producer.init_transactions(_WITHIN_S)
    producer.begin_transaction()
    producer.produce("bills", b"one pizza")
    producer.commit_transaction(_WITHIN_S)


def forward(client: dict[str, str | int], is_fixed: bool) -> None:
    """Write a bill for each order; the naive version commits what is still in the producer's buffer."""
    consumer = _consumer(client)
    producer = Producer({**client, "linger.ms": 0, "max.in.flight.requests.per.connection": 1})
    while True:
        order = _next(consumer)
        producer.produce("bills", order.value())
        if is_fixed:
            producer.flush(_WITHIN_S)
        consumer.commit(message=order, asynchronous=False)


def _consumer(client: dict[str, str | int]) -> Consumer:
    # With a group.instance.id, a restarted application gets its partitions at once.
    group = {"group.id": "shop", "group.instance.id": "shop", "enable.auto.commit": False}
    consumer = Consumer({**client, **group, "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    return consumer


def _next(consumer: Consumer) -> Message:
    while True:
        order = consumer.poll(0.1)
        if order is not None and order.error() is None:
            return order


MODES = {"consume": consume, "send": send, "write": write, "forward": forward}

if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KafkaException as error:  # a fenced writer ends
        print("ended by", error, flush=True)
