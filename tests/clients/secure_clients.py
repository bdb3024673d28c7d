"""TLS and SASL settings of the Python clients, and the error that each reports after a failed login."""

import asyncio
from collections.abc import Callable
from time import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as AiokafkaTokens
from confluent_kafka import KafkaError, Message, Producer
from kafka import KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokens

from tests.clients.login import Login, of_librdkafka, of_python
from tests.support import sasl

TOPIC = "secured"
# One connection attempt is enough: every further one adds a line to the broker's log.
ONE_ATTEMPT_MS = 60_000
PATIENCE_S = 120  # ends tests that hang


class RefusedError(Exception):
    """A client's own error: its type or name, and its text."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(f"{kind}: {words}")


def token(login: Login) -> str:
    """Return an unsecured token for the user."""
    return sasl.token({"sub": login.user, "exp": time() + login.expires_in_s})


class _AiokafkaToken(AiokafkaTokens):  # type: ignore[misc]  # it has no types
    def __init__(self, login: Login) -> None:
        self._login = login

    async def token(self) -> str:
        return token(self._login)


class _KafkaPythonToken(KafkaPythonTokens):  # type: ignore[misc]  # it has no types
    def __init__(self, login: Login) -> None:
        self._login = login

    def token(self) -> str:
        return token(self._login)


def aiokafka(bootstrap: str, login: Login) -> None:
    """Write and read a record; raise RefusedError."""

    async def write_and_read() -> None:
        config = of_python(bootstrap, login)
        if login.mechanism == "OAUTHBEARER":
            config |= {"sasl_oauth_token_provider": _AiokafkaToken(login)}
        producer = AIOKafkaProducer(**config)
        try:
            await producer.start()
            await producer.send_and_wait(TOPIC, b"x" * 100_000)
        finally:
            await producer.stop()
        consumer = AIOKafkaConsumer(TOPIC, auto_offset_reset="earliest", **config)
        await consumer.start()
        try:
            assert len((await consumer.getone()).value) == 100_000
        finally:
            await consumer.stop()

    try:
        asyncio.run(asyncio.wait_for(write_and_read(), PATIENCE_S))
    except Exception as error:
        raise RefusedError(type(error).__name__, str(error)) from error


def kafka_python(bootstrap: str, login: Login) -> None:
    """Write a record; raise RefusedError."""
    config = of_python(bootstrap, login) | {
        "bootstrap_timeout_ms": 3_000,
        "reconnect_backoff_ms": ONE_ATTEMPT_MS,
        "reconnect_backoff_max_ms": ONE_ATTEMPT_MS,
        "max_block_ms": PATIENCE_S * 1_000,
    }
    if login.mechanism == "OAUTHBEARER":
        config |= {"sasl_oauth_token_provider": _KafkaPythonToken(login)}
    try:
        producer = KafkaProducer(**config)
        try:
            producer.send(TOPIC, b"x" * 100_000).get(timeout=PATIENCE_S)
        finally:
            producer.close(timeout=1)
    except Exception as error:
        raise RefusedError(type(error).__name__, str(error)) from error


def confluent_kafka(bootstrap: str, login: Login) -> None:
    """Write a record; raise RefusedError."""
    errors: list[KafkaError] = []
    delivered: list[KafkaError | None] = []

    def on_delivery(error: KafkaError | None, message: Message) -> None:
        delivered.append(error)

    config = of_librdkafka(bootstrap, login) | {
        "error_cb": errors.append,
        "reconnect.backoff.ms": ONE_ATTEMPT_MS,
        "reconnect.backoff.max.ms": ONE_ATTEMPT_MS,
        "log_level": 0,
    }
    if login.mechanism == "OAUTHBEARER":
        config |= {"oauth_cb": lambda _: (token(login), time() + 3600)}
    producer = Producer(config)
    producer.produce(TOPIC, b"x" * 100_000, on_delivery=on_delivery)
    ends_s = time() + PATIENCE_S
    while not delivered and not errors and time() < ends_s:
        producer.poll(0.1)
    if delivered != [None]:
        producer.purge()
        producer.flush(1)
        first = errors[0] if errors else delivered[0]
        assert first is not None
        del producer  # ends its further attempts, which the traceback would keep alive
        raise RefusedError(first.name(), first.str())


CLIENTS: dict[str, Callable[[str, Login], None]] = {
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
    "confluent-kafka": confluent_kafka,
}
