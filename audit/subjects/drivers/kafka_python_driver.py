"""kafka-python: a producer, a consumer, an admin client, in a process of their own. Its clients block."""

import logging
import time
from collections.abc import Callable
from functools import partial
from threading import Event, Thread
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaConfigurationError, KafkaError

from sluice.audit.probes import GROUP, POLL_MS, TOPIC, Call, Consume, Produce
from sluice.audit.subjects.subject import Job, Tell

from .reporting import Teller, job_from_stdin, print_line

_FAILED_S = 0.1  # until what has failed is tried again
_AGAIN_S = 0.5  # after a client that could not start
_FOREVER_S = 1e6


def run(job: Job, tell: Tell) -> None:
    """Works until the process is ended."""
    teller = Teller(tell)
    config: dict[str, Any] = {
        "bootstrap_servers": job.bootstrap,
        "client_id": f"audit-{job.role}",
        **job.settings,
    }
    while True:
        try:
            match job.workload:
                case Produce():
                    _produce(config, job.workload, teller)
                case Consume():
                    _consume(config, job.workload, teller)
                case Call():
                    _call(config, job.workload, teller)
        except (KafkaConfigurationError, ValueError, TypeError) as error:  # settings that cannot be
            teller.event("rejected", error)
            time.sleep(_FOREVER_S)
        except KafkaError as error:  # it could not start
            teller.event("call-failed", error)
            time.sleep(_AGAIN_S)
        teller.event("closed")


def _until(lives_ms: int) -> float:
    return time.monotonic() + (lives_ms / 1000 if lives_ms else _FOREVER_S)


def _produce(config: dict[str, Any], workload: Produce, teller: Teller) -> None:
    producer = KafkaProducer(**config)
    teller.event("started")
    teller.event("ready")
    over = Event()
    threads = [
        Thread(target=_send, args=(producer, partition, workload.pause_ms, teller, over), daemon=True)
        for partition in range(workload.partitions)
        for _ in range(workload.pending)
    ]
    for thread in threads:
        thread.start()
    over.wait(_until(workload.lives_ms) - time.monotonic())
    over.set()
    producer.close(timeout=0)


def _send(producer: KafkaProducer, partition: int, pause_ms: int, teller: Teller, over: Event) -> None:
    while not over.is_set():
        number = teller.sent(partition)
        done = Event()
        try:
            future = producer.send(TOPIC, b"%d" % number, partition=partition)
            future.add_callback(partial(_delivered, teller, number, partition, done))
            future.add_errback(partial(_failed, teller, number, partition, done))
        except KafkaError as error:
            _failed(teller, number, partition, done, error)
        while not done.wait(_FAILED_S) and not over.is_set():
            pass
        over.wait(pause_ms / 1000)


def _delivered(teller: Teller, number: int, partition: int, done: Event, written: Any) -> None:
    teller.delivered(number, partition, written.offset)
    done.set()


def _failed(teller: Teller, number: int, partition: int, done: Event, error: BaseException) -> None:
    teller.failed(number, partition, error)
    done.set()


def _consume(config: dict[str, Any], workload: Consume, teller: Teller) -> None:
    consumer = KafkaConsumer(group_id=GROUP if workload.in_group else None, **config)
    teller.event("started")
    until_s, due_s = _until(workload.lives_ms), time.monotonic()
    try:
        if workload.in_group:
            consumer.subscribe([TOPIC])
        else:
            consumer.assign([TopicPartition(TOPIC, 0)])
        teller.event("ready")
        while (left_ms := int((until_s - time.monotonic()) * 1000)) > 0:
            poll_ms = min(left_ms, workload.commit_every_ms or POLL_MS)
            _tell_failure(teller, partial(_poll, consumer, poll_ms, teller))
            if workload.commit_every_ms and time.monotonic() >= due_s:
                due_s = time.monotonic() + workload.commit_every_ms / 1000
                _tell_failure(teller, consumer.commit)
    finally:
        consumer.close(autocommit=False, timeout_ms=0)


def _poll(consumer: KafkaConsumer, timeout_ms: int, teller: Teller) -> None:
    for records in consumer.poll(timeout_ms=timeout_ms).values():
        for record in records:
            teller.received(record.value, record.partition, record.offset)


def _call(config: dict[str, Any], workload: Call, teller: Teller) -> None:
    admin = KafkaAdminClient(**config)
    teller.event("started")
    teller.event("ready")
    while True:
        _tell_failure(teller, partial(_describe, admin, teller))
        time.sleep(workload.pause_ms / 1000)


def _describe(admin: KafkaAdminClient, teller: Teller) -> None:
    """It raises nothing, and says in its answer what a broker answered last."""
    for group in admin.describe_groups([GROUP]).values():
        if group["error"]:
            teller.event("call-failed", group["error"])


def _tell_failure(teller: Teller, call: Callable[[], object]) -> None:
    try:
        call()
    except KafkaError as error:
        teller.event("call-failed", error)
        time.sleep(_FAILED_S)


if __name__ == "__main__":
    logging.disable()
    run(job_from_stdin(), print_line)
