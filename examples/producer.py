"""Sends 15 MB as the client id `bronze` and prints how long each MB took: what a quota does to an application.

    sluice serve --override quota.producer.default=1M
    python examples/producer.py                         (pip install kafka-python)

With 1 MB/s the first 10 MB go at once, since a fresh quota has ten empty seconds behind it; then the broker holds on.
"""
# ruff: noqa: T201, TID251  (a program of its own: it talks to a person, and the time is what it shows)

import sys
import time

from kafka import KafkaProducer

bootstrap = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
producer = KafkaProducer(bootstrap_servers=bootstrap, client_id="bronze", batch_size=200_000)
started = time.monotonic()
for megabyte in range(1, 16):
    for sent in [producer.send("examples", bytes(100_000)) for _ in range(10)]:
        sent.get(timeout=30)
    print(f"{megabyte:2d} MB after {time.monotonic() - started:5.1f} s", flush=True)
producer.close()
