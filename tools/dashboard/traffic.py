"""Clients that produce data for every panel of the dashboard while a code block runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from confluent_kafka import Consumer, Producer

from tests.support.broker_process import BrokerProcess

PROPERTIES = (
    "sluice.admin.token=a secret",
    "quota.producer.default=40000",
    "quota.consumer.default=30000",
    "quota.window.num=3",
)
TOKEN = "a secret"
_RECORD = b"x" * 500
# Fails every tenth of one client's requests.
_FAULT = {
    "id": "flaky",
    "action": {"kind": "error", "code": "NOT_LEADER_OR_FOLLOWER"},
    "api": "Produce",
    "client_id": "unlucky",
    "schedule": "9 pass, 1 fail, repeat",
}
# Client id -> seconds from one record to the next: the first exceeds its quota.
_PRODUCERS = {"greedy": 0.005, "modest": 0.1, "unlucky": 0.05}


@contextmanager
def traffic(broker: BrokerProcess) -> Iterator[None]:
    """Run producers and a consumer above their quotas, with a fault rule for one of them."""
    broker.post("/api/v1/faults", _FAULT, token=TOKEN)
    over = Event()
    work = [_producing(broker.bootstrap, name, pause_s, over) for name, pause_s in _PRODUCERS.items()]
    threads = [Thread(target=one) for one in (*work, lambda: _consume(broker.bootstrap, over))]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _producing(bootstrap: str, client_id: str, pause_s: float, over: Event) -> Callable[[], None]:
    def produce() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "client.id": client_id, "linger.ms": 50})
        while not over.wait(pause_s):
            if len(producer) < 1000:
                producer.produce("load", _RECORD)
            producer.poll(0)
        producer.purge()
        producer.flush(1)

    return produce


def _consume(bootstrap: str, over: Event) -> None:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "client.id": "reader",
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "max.partition.fetch.bytes": 20_000,
            "topic.metadata.refresh.interval.ms": 500,  # the topic may be created later
        }
    )
    consumer.subscribe(["load"])
    while not over.is_set():
        consumer.poll(0.1)
    consumer.close()
