"""The limit of decompressed records (`max.decompressed.message.bytes`)."""

from collections.abc import Iterable

from sluice.broker.controller.configs.resource import BROKER, TOPIC
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD
from sluice.protocol.records.record import Record
from tools.differential.case import Layout, case
from tools.differential.cases.descriptions import alter, describe, settle
from tools.differential.requests import MAX_TIMESTAMP, PRODUCE_VERSION, fetch, fetched, list_offsets
from tools.differential.requests import produce as produced
from tools.differential.session import Session

_LIMIT = 1_000
_TIMESTAMP = 1_700_000_000_000
_NAME = "max.decompressed.message.bytes"


def batch(sizes: Iterable[int], codec: int = GZIP, **options: int | bool) -> bytes:
    """Return a batch of records with values of these sizes, one millisecond apart."""
    records = [Record(offset, _TIMESTAMP + offset, None, b"x" * size) for offset, size in enumerate(sizes)]
    return build_batch(records, compression=codec, **options)  # type: ignore[arg-type]


def produce(session: Session, topic: str, records: bytes) -> None:
    session.call(produced(topic, records), PRODUCE_VERSION)


@case()
def produce_around_the_limit(session: Session) -> None:
    session.create_topic("decompressed", configs={_NAME: str(_LIMIT)})
    for codec in (NONE, GZIP, SNAPPY, LZ4, ZSTD):
        for size in (985, 990, 991, 992, 993, 994, 995, 2_000, 300_000):
            produce(session, "decompressed", batch([size], codec))
    for sizes in ([500, 995], [995, 500], [990, 990], [400] * 500, [400] * 499 + [995], [10, 995, 995, 10]):
        produce(session, "decompressed", batch(sizes))


@case()
def produce_corrupt_records(session: Session) -> None:
    session.create_topic("decompressed-corrupt")
    for codec in (NONE, GZIP):
        whole = bytearray(batch([10], codec))
        for position in range(len(whole)):
            corrupt = whole.copy()
            corrupt[position] ^= 1
            produce(session, "decompressed-corrupt", bytes(corrupt))
        for length in (-1, 0, 13, 14, 48, 49, 50):
            corrupt = whole.copy()
            corrupt[8:12] = length.to_bytes(4, "big", signed=True)
            produce(session, "decompressed-corrupt", bytes(corrupt))
        for size in (0, 10, 20, 61, len(whole) - 1):
            produce(session, "decompressed-corrupt", bytes(whole[:size]))


@case()
def produce_what_is_rebuilt(session: Session) -> None:
    for compression in ("uncompressed", "lz4"):
        topic = f"decompressed-{compression}"
        session.create_topic(topic, configs={_NAME: str(_LIMIT), "compression.type": compression})
        for codec in (NONE, GZIP):
            for size in (990, 995):
                produce(session, topic, batch([size], codec))


@case()
def produce_to_a_compacted_topic(session: Session) -> None:
    session.create_topic("decompressed-keys", configs={_NAME: str(_LIMIT), "cleanup.policy": "compact"})
    for size in (980, 995):
        records = [Record(0, _TIMESTAMP, b"k", b"x" * size)]
        produce(session, "decompressed-keys", build_batch(records, compression=GZIP))
    produce(session, "decompressed-keys", batch([995]))


@case()
def look_up_stored_records(session: Session) -> None:
    session.create_topic("decompressed-stored")
    produce(session, "decompressed-stored", batch([10]))
    produce(session, "decompressed-stored", batch([10, 2_000, 10]))
    produce(session, "decompressed-stored", batch([2_000, 10], NONE))
    alter(session, TOPIC, "decompressed-stored", {_NAME: str(_LIMIT)})
    for timestamp in (_TIMESTAMP, _TIMESTAMP + 1, _TIMESTAMP + 2, _TIMESTAMP + 3, MAX_TIMESTAMP, -1, -2):
        session.call(list_offsets("decompressed-stored", timestamp, timeout_ms=1_000))
    for version in (4, 12):
        session.call(fetch(fetched("decompressed-stored"), max_wait_ms=100, min_bytes=1, max_bytes=2**31 - 1), version)


@case(Layout(name="broker-wide decompressed size"))
def limit_all_topics(session: Session) -> None:
    session.create_topic("decompressed-all")
    alter(session, BROKER, "", {_NAME: str(_LIMIT)})
    settle(session, TOPIC, "decompressed-all", _NAME, str(_LIMIT))
    describe(session, TOPIC, "decompressed-all", [_NAME])
    for size in (990, 995):
        produce(session, "decompressed-all", batch([size]))
