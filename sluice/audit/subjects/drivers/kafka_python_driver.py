"""The driver of kafka-python, whose clients block."""

import logging
import time
from collections.abc import Callable
from functools import partial
from threading import Event, Thread
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaConfigurationError, KafkaError

from sluice.audit.probes.probe import GROUP, POLL_MS, TOPIC, Call, Consume, Produce
from sluice.audit.subjects.subject import Job, OnCallback

from .reporting import FOREVER_S, DriverReporter, deadline_s, job_from_stdin, print_line

_RETRY_AFTER_S = 0.1
_RESTART_AFTER_S = 0.5


def run(job: Job, on_callback: OnCallback) -> None:
    reporter = DriverReporter(on_callback)
    config: dict[str, Any] = {"bootstrap_servers": job.bootstrap, "client_id": f"audit-{job.role}", **job.settings}
    while True:
        try:
            match job.workload:
                case Produce():
                    _produce(config, job.workload, reporter)
                case Consume():
                    _consume(config, job.workload, reporter)
                case Call():
                    _call(config, job.workload, reporter)
        except (KafkaConfigurationError, ValueError, TypeError) as error:
            reporter.event("rejected", error)
            time.sleep(FOREVER_S)
        except KafkaError as error:
            reporter.event("call-failed", error)
            time.sleep(_RESTART_AFTER_S)
        reporter.event("closed")


def _produce(config: dict[str, Any], workload: Produce, reporter: DriverReporter) -> None:
    reporter.event("started")
    producer = KafkaProducer(**config)
    reporter.event("ready")
    over = Event()
    threads = [
        Thread(target=_send, args=(producer, partition, workload.pause_ms, reporter, over), daemon=True)
        for partition in range(workload.partitions)
        for _ in range(workload.pending)
    ]
    for thread in threads:
        thread.start()
    over.wait(deadline_s(workload.lifetime_ms) - time.monotonic())
    over.set()
    producer.close(timeout=0)


def _send(producer: KafkaProducer, partition: int, pause_ms: int, reporter: DriverReporter, over: Event) -> None:
    while not over.is_set():
        number = reporter.sent(partition)
        done = Event()
        try:
            future = producer.send(TOPIC, b"%d" % number, partition=partition)
            future.add_callback(partial(_delivered, reporter, number, partition, done))
            future.add_errback(partial(_failed, reporter, number, partition, done))
        except KafkaError as error:
            _failed(reporter, number, partition, done, error)
        while not done.wait(_RETRY_AFTER_S) and not over.is_set():
            pass
        over.wait(pause_ms / 1000)


def _delivered(reporter: DriverReporter, number: int, partition: int, done: Event, written: Any) -> None:
    reporter.delivered(number, partition, written.offset)
    done.set()


def _failed(reporter: DriverReporter, number: int, partition: int, done: Event, error: BaseException) -> None:
    reporter.failed(number, partition, error)
    done.set()


def _consume(config: dict[str, Any], workload: Consume, reporter: DriverReporter) -> None:
    reporter.event("started")
    consumer = KafkaConsumer(group_id=GROUP if workload.in_group else None, **config)
    until_s, due_s = deadline_s(workload.lifetime_ms), time.monotonic()
    try:
        if workload.in_group:
            consumer.subscribe([TOPIC])
        else:
            consumer.assign([TopicPartition(TOPIC, 0)])
        reporter.event("ready")
        while (left_ms := int((until_s - time.monotonic()) * 1000)) > 0:
            poll_ms = min(left_ms, workload.commit_every_ms or POLL_MS)
            _report_failure(reporter, partial(_poll, consumer, poll_ms, reporter))
            if workload.commit_every_ms and time.monotonic() >= due_s:
                due_s = time.monotonic() + workload.commit_every_ms / 1000
                _report_failure(reporter, consumer.commit)
    finally:
        consumer.close(autocommit=False, timeout_ms=0)


def _poll(consumer: KafkaConsumer, timeout_ms: int, reporter: DriverReporter) -> None:
    for records in consumer.poll(timeout_ms=timeout_ms).values():
        for record in records:
            reporter.received(record.value, record.partition, record.offset)


def _call(config: dict[str, Any], workload: Call, reporter: DriverReporter) -> None:
    reporter.event("started")
    admin = KafkaAdminClient(**config)
    reporter.event("ready")
    while True:
        _report_failure(reporter, partial(_describe, admin, reporter))
        time.sleep(workload.pause_ms / 1000)


def _describe(admin: KafkaAdminClient, reporter: DriverReporter) -> None:
    """Describe the group; the call returns the broker's last error instead of raising it."""
    for group in admin.describe_groups([GROUP]).values():
        if group["error"]:
            reporter.event("call-failed", group["error"])


def _report_failure(reporter: DriverReporter, call: Callable[[], object]) -> None:
    try:
        call()
    except KafkaError as error:
        reporter.event("call-failed", error)
        time.sleep(_RETRY_AFTER_S)


if __name__ == "__main__":
    logging.disable()
    run(job_from_stdin(), print_line)
