"""Producers of confluent-kafka and kafka-python with the interface of the histories' clients."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import kafka
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from kafka.errors import KafkaError as KafkaPythonError

from tools.histories.clients import DELIVERY_TIMEOUT_MS, REQUEST_TIMEOUT_MS, TOPIC, TRANSACTION_TIMEOUT_MS

_POLL_S = 0.02
# Of one attempt: a retriable error leaves the outcome unknown, and the call is repeated until it is known.
_ATTEMPT_S = 1.0
_ATTEMPTS = 60
_CLOSE_S = 5.0
_CALL_S = 30.0

Outcome = asyncio.Future[Any]


def _settle(outcome: Outcome, error: object, offset: int) -> None:
    if outcome.done():
        return
    if error is None:
        outcome.set_result(SimpleNamespace(offset=offset))
    else:
        outcome.set_exception(OSError(str(error)))


class ConfluentProducer:
    """An idempotent producer of librdkafka; with a transactional id, a transactional one.

    If connections are lost, with and without a proxy, abort_transaction may end it by a fatal INVALID_TXN_STATE: it
    sends EndTxn for a transaction that the coordinator does not know or has completed.
    """

    def __init__(self, bootstrap: str, transactional_id: str | None = None) -> None:
        config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "socket.timeout.ms": REQUEST_TIMEOUT_MS,
            # After a delivery timeout, librdkafka sends records that were stored already with a new epoch.
            "delivery.timeout.ms": 0,
            "log_level": 0,
        }
        if transactional_id is not None:
            config |= {
                "transactional.id": transactional_id,
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "delivery.timeout.ms": DELIVERY_TIMEOUT_MS,
            }
        self._producer = Producer(config)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._polling = asyncio.create_task(self._poll())

    async def _poll(self) -> None:
        while True:
            self._producer.poll(0)
            await asyncio.sleep(_POLL_S)

    async def send(self, partition: int, key: str, value: int) -> Outcome:
        outcome = self._loop.create_future()

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            self._loop.call_soon_threadsafe(_settle, outcome, error, message.offset() or 0)

        try:
            self._producer.produce(TOPIC, b"%d" % value, key.encode(), partition, on_delivery=on_delivery)
        except KafkaException as error:
            raise OSError(str(error)) from None
        return outcome

    async def init_transactions(self) -> None:
        await asyncio.to_thread(self._repeat, self._producer.init_transactions)

    async def begin(self) -> None:
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            raise OSError(str(error)) from None

    async def end(self, *, commits: bool) -> None:
        producer = self._producer
        await asyncio.to_thread(self._repeat, producer.commit_transaction if commits else producer.abort_transaction)

    def _repeat(self, call: Callable[[float], None]) -> None:
        for _ in range(_ATTEMPTS):
            try:
                return call(_ATTEMPT_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise OSError(str(error)) from None
        raise TimeoutError

    async def close(self) -> None:
        self._polling.cancel()
        try:
            await asyncio.to_thread(self._producer.flush, _CLOSE_S)
        except KafkaException as error:
            raise OSError(str(error)) from None


class KafkaPythonProducer:
    """An idempotent producer of kafka-python; with a transactional id, a transactional one."""

    def __init__(self, bootstrap: str, transactional_id: str | None = None) -> None:
        self._config: dict[str, Any] = {
            "bootstrap_servers": bootstrap,
            "enable_idempotence": True,
            "request_timeout_ms": REQUEST_TIMEOUT_MS,
            "delivery_timeout_ms": DELIVERY_TIMEOUT_MS,
            "max_block_ms": DELIVERY_TIMEOUT_MS,
        }
        if transactional_id is not None:
            self._config |= {"transactional_id": transactional_id, "transaction_timeout_ms": TRANSACTION_TIMEOUT_MS}
        self._producer: Any = None

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._producer = await self._call(lambda: kafka.KafkaProducer(**self._config))

    async def _call(self, call: Callable[[], Any]) -> Any:
        """Call what may block in a thread.

        commit_transaction may block forever if the connection to the coordinator fails: the sender has taken EndTxn
        from its queue, and returns it only if no coordinator is known. This happens without a proxy, too.
        """
        try:
            return await asyncio.wait_for(asyncio.to_thread(call), _CALL_S)
        except KafkaPythonError as error:
            raise OSError(repr(error)) from None

    async def send(self, partition: int, key: str, value: int) -> Outcome:
        outcome = self._loop.create_future()
        producer, record = self._producer, {"value": b"%d" % value, "key": key.encode(), "partition": partition}
        sent = await self._call(lambda: producer.send(TOPIC, **record))

        def settle(error: object, offset: int) -> None:
            self._loop.call_soon_threadsafe(_settle, outcome, error, offset)

        sent.add_callback(lambda metadata: settle(None, metadata.offset))
        sent.add_errback(lambda error: settle(error, -1))
        return outcome

    async def init_transactions(self) -> None:
        await self._call(self._producer.init_transactions)

    async def begin(self) -> None:
        await self._call(self._producer.begin_transaction)

    async def end(self, *, commits: bool) -> None:
        producer = self._producer
        await self._call(producer.commit_transaction if commits else producer.abort_transaction)

    async def close(self) -> None:
        if self._producer is not None:
            await self._call(lambda: self._producer.close(timeout=_CLOSE_S))
