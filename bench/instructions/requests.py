"""The requests whose instructions are counted, in their order."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from bench.first_second import SEQUENCES, send_first_second
from bench.wire_client import CLIENT_ID, Client, create, frame, hello, high_quotas, join, metadata, produce_record
from sluice.protocol.message import Message
from tests.support.messages import request
from tests.support.records import batch, fetch, produce

TOPIC = "counted"
_LARGE_BATCH_BYTES = 64 * 1024
_CONNECTIONS = 64
_FIRST_SECONDS = 4  # each is twenty requests


class Kind(NamedTuple):
    """Requests that are counted together."""

    name: str
    prepare: Callable[[Client, int], Callable[[], None]]  # returns what sends them
    in_lap: int = 64  # requests, or sequences of requests; at least twice as many as connections


def fill_topic(client: Client, records: int) -> None:
    """Create the topic of all requests, with batches of one record."""
    client.exchange([frame(metadata(TOPIC), 12)] + [frame(produce_record(TOPIC), 12)] * records)


def _one_at_a_time(frames: Callable[[Client, int], list[bytes]], client: Client, count: int) -> Callable[[], None]:
    prepared = frames(client, count)
    return lambda: client.exchange(prepared)


def _same(message: Message, version: int) -> Callable[[Client, int], Callable[[], None]]:
    return partial(_one_at_a_time, lambda _, count: [frame(message, version)] * count)


def _produce(records: bytes) -> Message:
    return produce(12, records, topic=TOPIC, acks=-1, timeout_ms=1000)


def _pipelined(client: Client, count: int) -> Callable[[], None]:
    frames = [frame(produce_record(TOPIC), 12)] * count
    return lambda: client.exchange(frames, in_flight=16)


def _many_connections(client: Client, count: int) -> Callable[[], None]:
    produced = frame(produce_record(TOPIC), 12)
    connections = [client.connect() for _ in range(_CONNECTIONS)]

    def send() -> None:
        for _ in range(count // _CONNECTIONS):
            with client.stopped():
                for each in connections:
                    each.socket.sendall(produced)
            for each in connections:
                each.receive_bytes()

    for each in connections:
        each.exchange([produced])
    return send


def _idempotent(client: Client, count: int) -> list[bytes]:
    producer = client.call(request("InitProducerId", transactional_id=None, transaction_timeout_ms=1000), 4)
    ids = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    batches = [batch(bytes(100), **ids, base_sequence=sequence) for sequence in range(count + 1)]
    frames = [frame(_produce(one), 12) for one in batches]
    client.exchange(frames[:1])
    return frames[1:]


def _fetch(offset: int, session_id: int = 0, session_epoch: int = -1) -> Message:
    wanted = fetch(
        offset, topic=TOPIC, max_wait_ms=500, max_bytes=1 << 20, partition_max_bytes=200, current_leader_epoch=0
    )
    wanted.session_id, wanted.session_epoch = session_id, session_epoch
    return wanted


def _fetch_without_session(version: int, _: Client, count: int) -> list[bytes]:
    return [frame(_fetch(offset), version) for offset in range(count)]


def _fetch_in_session(client: Client, count: int) -> list[bytes]:
    opened = client.call(_fetch(0, session_epoch=0), 12)
    frames = [frame(_fetch(1 + i, opened.session_id, 1 + i), 12) for i in range(count + 1)]
    client.exchange(frames[:1])
    return frames[1:]


def _with_quota(frames: Callable[[Client, int], list[bytes]], client: Client, count: int) -> list[bytes]:
    client.call(high_quotas([CLIENT_ID], "producer_byte_rate", "consumer_byte_rate"), 1)
    return frames(client, count)


def _ten_topics(client: Client, count: int) -> list[bytes]:
    names = [f"{TOPIC}-{i}" for i in range(10)]
    client.call(create(dict.fromkeys(names, 3)), 7)
    return [frame(metadata(*names), 12)] * count


def _first_second(client_name: str, client: Client, count: int) -> Callable[[], None]:
    def send() -> None:
        for _ in range(count):
            send_first_second(client, SEQUENCES[client_name], TOPIC, client.new_name())

    return send


def _heartbeats(client: Client, count: int) -> list[bytes]:
    return [frame(join(client).heartbeat(), 4)] * count


def _commits(client: Client, count: int) -> list[bytes]:
    member = join(client)
    return [frame(member.commit(TOPIC, offset), 9) for offset in range(count)]


# Those with a quota are last: it applies to all later ones.
KINDS = (
    Kind("ApiVersions", _same(hello(), 4)),
    Kind("Metadata of a topic", _same(metadata(TOPIC), 12)),
    Kind("Metadata of ten topics", partial(_one_at_a_time, _ten_topics)),
    Kind("Produce", _same(produce_record(TOPIC), 12)),
    Kind("Produce, 16 in flight", _pipelined),
    Kind("Produce on 64 connections", _many_connections),
    Kind("Produce of 64 KiB", _same(produce_record(TOPIC, size=_LARGE_BATCH_BYTES), 12)),
    Kind("Produce of 63 records of 1 KiB", _same(_produce(batch(*[bytes(1024)] * 63)), 12)),
    Kind("Produce, idempotent", partial(_one_at_a_time, _idempotent)),
    Kind("Fetch", partial(_one_at_a_time, partial(_fetch_without_session, 12))),
    Kind("Fetch in a session", partial(_one_at_a_time, _fetch_in_session)),
    Kind("Heartbeat", partial(_one_at_a_time, _heartbeats)),
    Kind("OffsetCommit", partial(_one_at_a_time, _commits)),
    Kind("Fetch of version 4", partial(_one_at_a_time, partial(_fetch_without_session, 4))),
    Kind("First second of aiokafka", partial(_first_second, "aiokafka"), _FIRST_SECONDS),
    Kind("First second of java", partial(_first_second, "java"), _FIRST_SECONDS),
    Kind("Produce, idempotent, with a quota", partial(_one_at_a_time, partial(_with_quota, _idempotent))),
    Kind("Fetch in a session, with a quota", partial(_one_at_a_time, partial(_with_quota, _fetch_in_session))),
)
