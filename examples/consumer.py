"""Reads the records of producer.py as client id `reader`, without a consumer group.

python examples/consumer.py                         (pip install kafka-python)
"""
# ruff: noqa: T201  (a program that prints)

import sys

from kafka import KafkaConsumer, TopicPartition

bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
consumer = KafkaConsumer(
    bootstrap_servers=bootstrap,
    client_id="reader",
    group_id=None,
    auto_offset_reset="earliest",
    consumer_timeout_ms=2_000,  # exits after 2 s without records
)
consumer.assign([TopicPartition("examples", 0)])
records = [len(record.value) for record in consumer]
print(f"{len(records)} records, {sum(records) / 1e6:.1f} MB")
consumer.close()
