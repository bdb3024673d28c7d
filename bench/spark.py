"""The throughput of Spark Structured Streaming from sluice, compared with the broker at `BOOTSTRAP=HOST:PORT`, if set.

A typical job: parse JSON from four partitions, aggregate by client in windows of one second, with percentiles, write
Parquet (`availableNow`). The brokers alternate in one Spark session, with the same data. The first round warms up and
does not count. Ratios are within a round.
"""

import argparse
import os
import tempfile
from pathlib import Path
from random import Random
from statistics import median
from time import perf_counter
from uuid import uuid4

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from sluice.pipeline.session import open_session
from tests.support.broker_process import running_broker

PARTITIONS = 4
CLIENTS = 20
RECORD_BYTES = 300
PER_SECOND = 10_000  # records per second of event time
PATIENCE_S = 600
_SETTINGS = {
    "spark.driver.memory": "2g",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
_COLUMNS = "at_ms bigint, client string, latency_ms double, bytes bigint"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.spark", description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=4)  # even, so that each broker is first equally often
    arguments = parser.parse_args()
    other = os.environ.get("BOOTSTRAP")
    with tempfile.TemporaryDirectory() as folder, running_broker(Path(folder) / "log") as broker:
        targets = {"sluice": broker.bootstrap} | ({"other": other} if other else {})
        topic = f"bench-{uuid4().hex[:8]}"
        for name, bootstrap in targets.items():
            print(f"{name}: {_fill(bootstrap, topic, arguments.records):,.0f} records/s written")
        spark = open_session("bench", master="local[2]", settings=_SETTINGS)
        rounds = [
            _round(spark, targets, topic, Path(folder) / str(number), turn=number)
            for number in range(arguments.rounds + 1)
        ]
    _report(rounds[1:], arguments.records)


def _fill(bootstrap: str, topic: str, records: int) -> float:
    """Write the records; return the records per second."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        created.result(PATIENCE_S)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 1_000_000})
    chance = Random(0)
    began = perf_counter()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, _record(number, chance), partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    assert producer.flush(PATIENCE_S) == 0
    return records / (perf_counter() - began)


def _record(number: int, chance: Random) -> str:
    at_ms = 1_700_000_000_000 + number * 1000 // PER_SECOND
    fields = f'"at_ms":{at_ms},"client":"client-{number % CLIENTS}"'
    fields += f',"latency_ms":{chance.random() * 100:.3f},"bytes":{number % 9973}'
    return f'{{{fields},"padding":"{"x" * (RECORD_BYTES - len(fields) - 15)}"}}'


def _round(spark: SparkSession, targets: dict[str, str], topic: str, folder: Path, turn: int) -> dict[str, float]:
    """Return the seconds of each target; their order rotates."""
    names = list(targets)
    order = names[turn % len(names) :] + names[: turn % len(names)]
    seconds = {name: _run(spark, targets[name], topic, folder / name) for name in order}
    print("  ".join(f"{name} {seconds[name]:.1f} s" for name in names), flush=True)
    return seconds


def _run(spark: SparkSession, bootstrap: str, topic: str, folder: Path) -> float:
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    rows = records.select(f.from_json(f.col("value").cast("string"), _COLUMNS).alias("row")).select("row.*")
    rows = rows.withColumn("at", f.timestamp_millis("at_ms")).withWatermark("at", "0 seconds")
    windows = rows.groupBy(f.window("at", "1 second"), "client").agg(
        f.count("client").alias("records"), f.sum("bytes"), f.percentile_approx("latency_ms", [0.5, 0.99])
    )
    named = windows.toDF("window", "client", "records", "bytes", "latency_ms")
    writer = named.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    began = perf_counter()
    query = writer.trigger(availableNow=True).start(str(folder / "windows"))
    assert query.awaitTermination(PATIENCE_S), "the job timed out"
    return perf_counter() - began


def _report(rounds: list[dict[str, float]], records: int) -> None:
    for name in rounds[0]:
        speeds = [records / seconds[name] for seconds in rounds]
        print(f"{name}: {median(speeds):,.0f} records/s ({min(speeds):,.0f} to {max(speeds):,.0f})")
    if "other" in rounds[0]:
        ratios = [seconds["other"] / seconds["sluice"] for seconds in rounds]
        print(f"sluice is {median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
