"""The driver of Kafka's Java client, in a JVM that this process controls by py4j.

Clients in the JVM outlive this process, so SIGTERM closes them first.
"""

import os
import signal
import time
import traceback
from collections.abc import Callable
from threading import Event, Thread
from types import FrameType
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

from sluice.audit.probes.probe import GROUP, POLL_MS, TOPIC, Call, Consume, Produce
from sluice.audit.subjects.subject import Job, OnCallback

from .reporting import FOREVER_S, DriverReporter, deadline_s, job_from_stdin, print_line

_RETRY_AFTER_S = 0.1


class JavaClients:
    def __init__(self, gateway: JavaGateway, job: Job, on_callback: OnCallback) -> None:
        self._jvm = gateway.jvm
        self._kafka = gateway.jvm.org.apache.kafka
        self._job = job
        self._reporter = DriverReporter(on_callback)
        self._open: Any = None
        self._settings = gateway.jvm.java.util.HashMap()
        for name, value in job.settings.items():
            self._settings.put(name, str(value).lower() if isinstance(value, bool) else str(value))
        self._settings.put("bootstrap.servers", job.bootstrap)
        self._settings.put("client.id", f"audit-{job.role}")

    def run(self) -> None:
        work = self._job.workload
        while True:
            try:
                match work:
                    case Produce():
                        self._produce(work)
                    case Consume():
                        self._consume(work)
                    case Call():
                        self._call(work)
            except Py4JJavaError as error:
                self._reporter.event("rejected", _error_text(error))
                time.sleep(FOREVER_S)
            self.close()

    def close(self) -> None:
        client, self._open = self._open, None
        if client is not None:
            client.close(self._jvm.java.time.Duration.ofMillis(0))
            self._reporter.event("closed")

    def _opened(self, create: Callable[[Any], Any]) -> Any:
        self._reporter.event("started")
        self._open = create(self._settings)
        self._reporter.event("ready")
        return self._open

    def _produce(self, work: Produce) -> None:
        producer = self._opened(self._kafka.clients.producer.KafkaProducer)
        over = Event()
        for partition in range(work.partitions):
            for _ in range(work.pending):
                Thread(target=self._send, args=(producer, partition, work.pause_ms, over), daemon=True).start()
        try:
            over.wait(deadline_s(work.lifetime_ms) - time.monotonic())
        finally:  # also at SIGTERM, so that no record is sent after the close, which would fail
            over.set()

    def _send(self, producer: Any, partition: int, pause_ms: int, over: Event) -> None:
        record_of = self._kafka.clients.producer.ProducerRecord
        while not over.is_set():
            number = self._reporter.sent(partition)
            try:
                written = producer.send(record_of(TOPIC, partition, None, str(number))).get()
                self._reporter.delivered(number, partition, written.offset())
            except Py4JJavaError as error:
                self._reporter.failed(number, partition, _error_text(error))
            except Py4JError:  # the JVM is gone
                return
            over.wait(pause_ms / 1000)

    def _consume(self, work: Consume) -> None:
        if work.in_group:
            self._settings.put("group.id", GROUP)
        consumer = self._opened(self._kafka.clients.consumer.KafkaConsumer)
        topics, millis = self._jvm.java.util.ArrayList(), self._jvm.java.time.Duration.ofMillis
        if work.in_group:
            topics.add(TOPIC)
            consumer.subscribe(topics)
        else:
            topics.add(self._kafka.common.TopicPartition(TOPIC, 0))
            consumer.assign(topics)
        until_s, due_s = deadline_s(work.lifetime_ms), time.monotonic()
        while (left_ms := int((until_s - time.monotonic()) * 1000)) > 0:
            try:
                poll_ms = min(left_ms, work.commit_every_ms or POLL_MS)
                for record in consumer.poll(millis(poll_ms)).iterator():
                    self._reporter.received(record.value().encode(), record.partition(), record.offset())
                if work.commit_every_ms and time.monotonic() >= due_s:
                    due_s = time.monotonic() + work.commit_every_ms / 1000
                    consumer.commitSync()
            except Py4JJavaError as error:
                self._reporter.event("call-failed", _error_text(error))
                time.sleep(_RETRY_AFTER_S)

    def _call(self, work: Call) -> None:
        admin = self._opened(self._kafka.clients.admin.AdminClient.create)
        groups = self._jvm.java.util.ArrayList()
        groups.add(GROUP)
        while True:
            try:
                admin.describeConsumerGroups(groups).all().get()
            except Py4JJavaError as error:
                self._reporter.event("call-failed", _error_text(error))
            time.sleep(work.pause_ms / 1000)


def _error_text(error: Py4JJavaError) -> str:
    found = error.java_exception
    while (cause := found.getCause()) is not None:
        found = cause
    text = str(found.getMessage()).splitlines()
    return f"{found.getClass().getSimpleName()}: {text[0] if text else ''}"


def main() -> None:
    """Run until SIGTERM."""
    parameters = GatewayParameters(
        port=int(os.environ["SLUICE_PY4J_PORT"]), auth_token=os.environ["SLUICE_PY4J_TOKEN"], auto_convert=True
    )
    clients = JavaClients(JavaGateway(gateway_parameters=parameters), job_from_stdin(), print_line)

    def end(number: int, frame: FrameType | None) -> None:
        raise SystemExit

    signal.signal(signal.SIGTERM, end)
    code = 0
    try:
        clients.run()
    except Exception:
        traceback.print_exc()
        code = 1
    finally:
        clients.close()
        os._exit(code)  # threads may block in the JVM forever


if __name__ == "__main__":
    main()
