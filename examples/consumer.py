"""Reads the records of producer.py as client id `reader`, without a consumer group.

python examples/consumer.py [BOOTSTRAP]             (pip install kafka-python)

Without an address, it starts a broker with a fetch quota of 200 kB/s and 2.5 MB of records. The first 2 MB arrive at
once, because a new quota has ten unused seconds; then the broker throttles.
"""
# ruff: noqa: T201, TID251  (a program that prints, and measures real time)

import time

from kafka import KafkaConsumer, TopicPartition
from own_broker import given_or_own

with given_or_own(quota_consumer_default="200k") as (bootstrap, broker):
    if broker is not None:
        broker.client("writer").send("examples", *[bytes(100_000)] * 25)
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap,
        client_id="reader",
        group_id=None,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=100_000,
        consumer_timeout_ms=15_000,  # exits after 15 s without records
    )
    partition = TopicPartition("examples", 0)
    consumer.assign([partition])
    end = consumer.end_offsets([partition])[partition]
    started = time.monotonic()
    records = size = 0
    for record in consumer:
        records, size = records + 1, size + len(record.value)
        if size % 500_000 < len(record.value):
            print(f"{size / 1e6:4.1f} MB after {time.monotonic() - started:5.1f} s", flush=True)
        if record.offset + 1 == end:
            break
    print(f"{records} records, {size / 1e6:.1f} MB")
    consumer.close()
