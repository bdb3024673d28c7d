"""Sends 15 MB as client id `bronze`, and prints the time of each MB to show the effect of a quota.

python examples/producer.py [BOOTSTRAP]             (pip install kafka-python)

Without an address, it starts a broker with a quota of 1 MB/s. The first 10 MB pass at once, because a new quota has ten
unused seconds; then the broker throttles.
"""
# ruff: noqa: T201, TID251  (a program that prints, and measures real time)

import time

from kafka import KafkaProducer
from own_broker import given_or_own

with given_or_own(quota_producer_default="1M") as (bootstrap, _):
    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id="bronze", batch_size=200_000)
    started = time.monotonic()
    for megabyte in range(1, 16):
        for sent in [producer.send("examples", bytes(100_000)) for _ in range(10)]:
            sent.get(timeout=30)
        print(f"{megabyte:2d} MB after {time.monotonic() - started:5.1f} s", flush=True)
    producer.close()
