"""No call of the public API waits without a bound: every method, against brokers that do not answer, in virtual time.

The methods and their arguments are generated from the signatures.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest

from sluice import Broker
from sluice.client.admin import AdminClient, NewTopic
from sluice.client.consumer import Consumer, TopicPartition
from sluice.client.errors import KafkaException
from sluice.client.producer import Producer
from sluice.embedded.client import LocalClient

ADDRESS = ("127.0.0.1", 9092)
TIMES: dict[str, dict[str, Any]] = {
    "producer": {"max.block.ms": 3000, "delivery.timeout.ms": 4000, "request.timeout.ms": 2000},
    "consumer": {"default.api.timeout.ms": 3000, "request.timeout.ms": 2000, "group.id": "g"},
    "admin": {"default.api.timeout.ms": 3000, "request.timeout.ms": 2000},
}
# The largest of the times above, a poll of 10 s (below), and the end of an open request.
LIMIT_S = {"producer": 6, "consumer": 12, "admin": 6}
CLOSING_S = 32  # `Consumer.close` has 30 s


class Ending(asyncio.Protocol):
    """A broker that closes each connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.close()


BROKERS: dict[str, type[asyncio.Protocol] | None] = {"gone": None, "mute": asyncio.Protocol, "refusing": Ending}


@asynccontextmanager
async def broker_that_is(kind: str) -> AsyncIterator[dict[str, Any]]:
    protocol = BROKERS[kind]
    server = None if protocol is None else await asyncio.get_running_loop().create_server(protocol, *ADDRESS)
    try:
        yield {"bootstrap.servers": "{}:{}".format(*ADDRESS)}
    finally:
        if server is not None:
            server.close()


# -- generated arguments -----------------------------------------------------------------------------------------------

KNOWN: dict[object, object] = {str: "t", int: 1, float: 10_000.0, bool: False, bytes: b"a", Any: None, object: None}


def sample(annotation: Any) -> Any:
    """Return a value of a type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in KNOWN:
        return KNOWN[annotation]
    if origin in (Union, UnionType):
        return sample(next((one for one in arguments if one is not NoneType), NoneType))
    if origin in (Annotated, Literal):
        return sample(arguments[0]) if origin is Annotated else arguments[0]
    if origin in (Iterable, Sequence, Collection, list):
        return [sample(arguments[0])]
    if origin is frozenset:
        return frozenset([sample(arguments[0])])
    if origin is tuple:
        return tuple(sample(one) for one in arguments)
    if origin in (Mapping, dict):
        return {sample(arguments[0]): sample(arguments[1])}
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return next(iter(annotation))
    return annotation(**arguments_of(annotation))


def arguments_of(function: Callable[..., object]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    needed = [one for one in parameters if one.default is one.empty and one.name != "self"]
    return {one.name: sample(one.annotation) for one in needed if one.kind is not one.VAR_POSITIONAL}


def methods(of: type) -> list[str]:
    return sorted(name for name, _ in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_"))


CASES = [
    (client, name)
    for client, of in (("producer", Producer), ("consumer", Consumer), ("admin", AdminClient))
    for name in methods(of)
]


@asynccontextmanager
async def opened(client: str, config: Mapping[str, Any], name: str) -> AsyncIterator[Any]:
    given = {**config, **TIMES[client]}
    if client == "producer":
        transactional = {"transactional.id": "t"} if "transaction" in name else {}
        async with Producer({**given, **transactional}) as producer:
            yield producer
    elif client == "consumer":
        async with Consumer(given) as consumer:
            if name in ("poll", "unsubscribe"):
                consumer.subscribe(["t"])
            elif name not in ("subscribe", "assign"):
                consumer.assign([TopicPartition("t", 1)])
            yield consumer
    else:
        async with AdminClient(given) as admin:
            yield admin


@pytest.mark.parametrize("kind", BROKERS)
@pytest.mark.parametrize(("client", "name"), CASES, ids=[f"{client}.{name}" for client, name in CASES])
async def test_call_returns_or_raises_within_its_limit(client: str, name: str, kind: str) -> None:
    loop = asyncio.get_running_loop()
    async with broker_that_is(kind) as config:
        async with opened(client, config, name) as one:
            began = loop.time()
            try:
                result = getattr(one, name)(**arguments_of(getattr(type(one), name)))
                while inspect.isawaitable(result):  # `send` returns a future
                    result = await result
            except KafkaException:
                pass
            assert loop.time() - began <= (CLOSING_S if name == "close" else LIMIT_S[client])
            began = loop.time()
        assert loop.time() - began <= CLOSING_S


@pytest.mark.parametrize("kind", BROKERS)
async def test_calls_of_a_broker_have_limits(kind: str) -> None:
    loop = asyncio.get_running_loop()
    async with broker_that_is(kind) as config:
        client = LocalClient(config)
        for call in (client.send("t", b"a", timeout_s=2), client.receive("t", timeout_s=2)):
            began = loop.time()
            with pytest.raises((TimeoutError, KafkaException)):
                await call
            assert loop.time() - began <= CLOSING_S
    async with Broker() as broker:
        for wait in (broker.wait_for("Throttle", timeout_s=2), broker.wait_for(lambda: False, timeout_s=2)):
            with pytest.raises(TimeoutError):
                await wait


def test_arguments_are_generated() -> None:
    assert arguments_of(AdminClient.create_topics) == {"topics": [NewTopic("t")]}
    assert len(CASES) > 40
