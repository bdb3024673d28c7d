"""Blocking producers and consumers of aiokafka, kafka-python and confluent-kafka that report errors by name."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from threading import Thread
from time import monotonic, sleep
from typing import Any, NamedTuple, TypeVar

import aiokafka
import confluent_kafka
import kafka

from tests.clients.fault_settings import SESSION_MS, Settings, settings_of

TOPIC = "t"
PARTITION = 0
GROUP = "g"
ANSWER_S = 15.0  # time limit of any expected result: longer than the clients' own timeouts here
POLL_S = 0.1
CLOSE_S = 0.5
NO_ANSWER = "no outcome"  # of a record, within its time limit

_T = TypeVar("_T")


def error_name(error: object) -> str:
    """Return the name of a library's error, as an application would catch it."""
    if isinstance(error, confluent_kafka.KafkaException):
        error = error.args[0]
    if isinstance(error, confluent_kafka.KafkaError):
        return f"{error.name()}{' (fatal)' if error.fatal() else ''}"
    return type(error).__name__


# -- aiokafka ----------------------------------------------------------------------------------------------------------


class _Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(lambda loop, context: None)  # tasks cancelled by close are expected
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, main: Awaitable[_T], timeout_s: float = ANSWER_S) -> _T:
        async def bounded() -> _T:
            return await asyncio.wait_for(main, timeout_s)

        return asyncio.run_coroutine_threadsafe(bounded(), self._loop).result()

    def close(self) -> None:
        async def end() -> None:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            if others:
                await asyncio.wait(others, timeout=CLOSE_S)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Aiokafka:
    """A client in its own event loop."""

    def __init__(self, create: Callable[[], Any]) -> None:
        self._loop = _Loop()
        try:
            self._client = self._loop.run(self._started(create))
        except BaseException:
            self._loop.close()
            raise

    async def _started(self, create: Callable[[], Any]) -> Any:
        client = create()
        try:
            await client.start()
        except BaseException:
            await client.stop()
            raise
        return client

    def close(self) -> None:
        # It waits for records that are never acknowledged, and sends LeaveGroup to a coordinator that may be down.
        with suppress(Exception):
            self._loop.run(self._client.stop(), CLOSE_S)
        self._loop.close()


class AiokafkaProducer(_Aiokafka):
    """aiokafka's."""

    def __init__(self, bootstrap: str, more: Settings) -> None:
        settings = settings_of("aiokafka", "producer", more)
        super().__init__(lambda: aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, **settings))

    def send(self, values: Sequence[bytes], timeout_s: float) -> list[str]:
        return self._loop.run(self._sent(values, timeout_s), timeout_s + ANSWER_S)

    async def _sent(self, values: Sequence[bytes], timeout_s: float) -> list[str]:
        async def one(value: bytes) -> str:
            try:
                sending = self._client.send_and_wait(TOPIC, value, partition=PARTITION)
                await asyncio.wait_for(sending, timeout_s)
            except TimeoutError:
                return NO_ANSWER
            except Exception as error:
                return error_name(error)
            return ""

        return await asyncio.gather(*map(one, values))


class AiokafkaConsumer(_Aiokafka):
    """aiokafka's."""

    def __init__(self, bootstrap: str, more: Settings, group: str) -> None:
        settings = settings_of("aiokafka", "consumer", more)
        if group:
            settings |= {"group_id": group, "heartbeat_interval_ms": 100, "session_timeout_ms": SESSION_MS}
        self._topics = [TOPIC] if group else []
        super().__init__(lambda: aiokafka.AIOKafkaConsumer(*self._topics, bootstrap_servers=bootstrap, **settings))

    async def _started(self, create: Callable[[], Any]) -> Any:
        consumer = await super()._started(create)
        if not self._topics:
            consumer.assign([aiokafka.TopicPartition(TOPIC, PARTITION)])
        return consumer

    def poll(self) -> list[bytes]:
        polled = self._loop.run(self._client.getmany(timeout_ms=int(POLL_S * 1000)))
        return [record.value for records in polled.values() for record in records]


# -- kafka-python ------------------------------------------------------------------------------------------------------


class KafkaPythonProducer:
    """kafka-python's."""

    def __init__(self, bootstrap: str, more: Settings) -> None:
        settings = settings_of("kafka-python", "producer", more)
        self._producer = kafka.KafkaProducer(bootstrap_servers=bootstrap, **settings)

    def send(self, values: Sequence[bytes], timeout_s: float) -> list[str]:
        deadline = monotonic() + timeout_s
        return [self._outcome(future, deadline) for future in [self._send(value) for value in values]]

    def _send(self, value: bytes) -> Any:
        try:
            return self._producer.send(TOPIC, value, partition=PARTITION)
        except kafka.errors.KafkaError as error:
            return error

    def _outcome(self, future: Any, deadline: float) -> str:
        if isinstance(future, Exception):
            return error_name(future)
        while not future.is_done:
            if monotonic() > deadline:
                return NO_ANSWER
            sleep(0.005)
        return "" if future.succeeded() else error_name(future.exception)

    def close(self) -> None:
        self._producer.close(timeout=CLOSE_S)


class KafkaPythonConsumer:
    """kafka-python's."""

    def __init__(self, bootstrap: str, more: Settings, group: str) -> None:
        settings = settings_of("kafka-python", "consumer", more)
        self._poll_ms = int(POLL_S * 1000)
        if group:
            # It drops the response to SyncGroup if that arrives between two polls, and never fetches again. So a poll
            # is longer than any rebalance here, which ends with the session of the old member.
            self._poll_ms = 2 * SESSION_MS
            settings |= {"group_id": group, "heartbeat_interval_ms": 100, "session_timeout_ms": SESSION_MS}
        self._consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, **({"group_id": None} | settings))
        if group:
            # It rejoins if it learns the partitions only after it has joined. In one of a hundred runs it then sends no
            # heartbeat and no fetch any more. So fetch the metadata first.
            self._consumer.partitions_for_topic(TOPIC)
            self._consumer.subscribe([TOPIC])
        else:
            self._consumer.assign([kafka.TopicPartition(TOPIC, PARTITION)])

    def poll(self) -> list[bytes]:
        polled = self._consumer.poll(timeout_ms=self._poll_ms)
        return [record.value for records in polled.values() for record in records]

    def close(self) -> None:
        self._consumer.close(timeout_ms=int(CLOSE_S * 1000), autocommit=False)


# -- confluent-kafka ---------------------------------------------------------------------------------------------------


class ConfluentProducer:
    """confluent-kafka's."""

    def __init__(self, bootstrap: str, more: Settings) -> None:
        settings = settings_of("confluent-kafka", "producer", more)
        self._producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **settings})

    def send(self, values: Sequence[bytes], timeout_s: float) -> list[str]:
        outcomes: dict[int, str] = {}
        for number, value in enumerate(values):

            def delivered(error: object, _: object, number: int = number) -> None:
                outcomes[number] = "" if error is None else error_name(error)

            try:
                self._producer.produce(TOPIC, value, partition=PARTITION, on_delivery=delivered)
            except confluent_kafka.KafkaException as error:
                outcomes[number] = error_name(error)
        deadline = monotonic() + timeout_s
        while len(outcomes) < len(values) and monotonic() < deadline:
            self._producer.poll(0.05)
        return [outcomes.get(number, NO_ANSWER) for number in range(len(values))]

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(CLOSE_S)


class ConfluentConsumer:
    """confluent-kafka's."""

    def __init__(self, bootstrap: str, more: Settings, group: str) -> None:
        settings = settings_of("confluent-kafka", "consumer", more)
        settings |= {"group.id": group or "unused"}
        if group:
            settings |= {"heartbeat.interval.ms": 100, "session.timeout.ms": SESSION_MS}
        self._consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, **settings})
        if group:
            self._consumer.subscribe([TOPIC])
        else:
            offset = confluent_kafka.OFFSET_BEGINNING
            self._consumer.assign([confluent_kafka.TopicPartition(TOPIC, PARTITION, offset)])

    def poll(self) -> list[bytes]:
        values: list[bytes] = []
        while (message := self._consumer.poll(POLL_S if not values else 0)) is not None:
            error = message.error()
            if error is not None:
                raise confluent_kafka.KafkaException(error)
            value = message.value()
            assert value is not None
            values.append(value)
        return values

    def close(self) -> None:
        self._consumer.close()


# `send` returns the outcome of each record: "" if it is acknowledged, else the error name. `poll` returns the records
# of the next POLL_S. Both raise the library's errors. `close` also works while requests are pending.
FaultProducer = AiokafkaProducer | KafkaPythonProducer | ConfluentProducer
FaultConsumer = AiokafkaConsumer | KafkaPythonConsumer | ConfluentConsumer


class FaultClient(NamedTuple):
    """A library.

    The functions accept `bootstrap.servers`, more settings by the library's names, and for a consumer a group
    ("" for none).
    """

    name: str
    version: Callable[[], str]
    producer: Callable[[str, Settings], FaultProducer]
    consumer: Callable[[str, Settings, str], FaultConsumer]


FAULT_CLIENTS = (
    FaultClient("aiokafka", lambda: aiokafka.__version__, AiokafkaProducer, AiokafkaConsumer),
    FaultClient("kafka-python", lambda: kafka.__version__, KafkaPythonProducer, KafkaPythonConsumer),
    FaultClient(
        "confluent-kafka",
        lambda: f"{confluent_kafka.__version__} (librdkafka {confluent_kafka.libversion()[0]})",
        ConfluentProducer,
        ConfluentConsumer,
    ),
)
