"""Broker selection and retries of admin calls (Kafka's KafkaAdminClient.Call and AdminApiDriver).

A call is sent to the controller, a given broker or the least loaded one, as soon as that node is ready. The timeout
of its request is the rest of the call's time, at most `request.timeout.ms`. If the node is lost before the request is
sent, another one is chosen; this is not a retry. After a retriable error (KIP-580) the call is retried with a growing
backoff, up to `retries` times. If another broker is responsible, metadata is updated first. The final TimeoutException
reports the last failure.

In calls with several *keys*, all keys of a node share a request, and keys with a retriable error are looked up and
requested again.

Different on purpose: Kafka's driver repeats a lookup without a backoff, and does not await the nodes of one attempt
together.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from random import Random  # noqa: TID251  (the type of an argument; nothing is drawn from the module)
from typing import Generic, Protocol, TypeVar

from sluice.client.config import ClientConfig
from sluice.client.errors import (
    ApiException,
    DisconnectException,
    KafkaException,
    RefreshRetriableException,
    RetriableException,
    TimeoutException,
    exception_of,
)
from sluice.client.metadata.cluster import Node
from sluice.client.network.asyncio_network import AsyncNetwork
from sluice.client.network.in_flight import Request, request_of
from sluice.client.network.network_client import NetworkClient
from sluice.client.retry_sites import RetrySite, backoff_at
from sluice.protocol.apis.metadata import MetadataRequest, MetadataResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

K = TypeVar("K")
V = TypeVar("V")
V_co = TypeVar("V_co", covariant=True)
M = TypeVar("M", bound=Message)

# Chooses a node; None: metadata is needed first.
NodeProvider = Callable[[NetworkClient, float], Node | None]
# A request, or a function that creates one for a timeout in ms.
RequestSource = Request | Callable[[int], Request]
Lookup = Callable[["AdminCalls", Collection[K], float], Awaitable[Mapping[K, NodeProvider | KafkaException]]]
Fetch = Callable[[NodeProvider, list[K]], Awaitable[Mapping[K, V | KafkaException]]]
# Error codes after which a key is retried.
RetriedCodes = Collection[int]

CONTROLLER_RETRIES: RetriedCodes = frozenset((ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED))


def least_loaded(client: NetworkClient, now_ms: float) -> Node | None:
    return client.least_loaded_node(now_ms).node


def controller(client: NetworkClient, now_ms: float) -> Node | None:
    return client.metadata.cluster.controller


@cache  # returns one object per broker, so that its keys share a request
def broker(node_id: int) -> NodeProvider:
    def provide(client: NetworkClient, now_ms: float) -> Node | None:
        return client.metadata.cluster.nodes.get(node_id)

    return provide


class Outcomes(Generic[K, V_co]):
    """A value or an error for each key; `outcomes[key]` returns the value or raises the error."""

    def __init__(self, by_key: Mapping[K, V_co | KafkaException]) -> None:
        self._by_key = by_key

    def __getitem__(self, key: K) -> V_co:
        outcome = self._by_key[key]
        if isinstance(outcome, KafkaException):
            raise outcome
        return outcome

    def __iter__(self) -> Iterator[K]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def all(self) -> dict[K, V_co]:
        """Return the values by key, or raise the first error."""
        return {key: self[key] for key in self._by_key}

    def errors(self) -> dict[K, KafkaException]:
        return {key: outcome for key, outcome in self._by_key.items() if isinstance(outcome, KafkaException)}


class WithErrorCode(Protocol):
    @property
    def error_code(self) -> int: ...


def raise_error(response: WithErrorCode) -> None:
    if response.error_code:
        raise exception_of(response.error_code, getattr(response, "error_message", None))


def outcome(result: WithErrorCode, value: V) -> V | ApiException:
    if result.error_code:
        return exception_of(result.error_code, getattr(result, "error_message", None))
    return value


class AdminCalls:
    def __init__(self, network: AsyncNetwork, config: ClientConfig, random: Random) -> None:
        self.network = network
        self._clock = network.clock
        self._backoff = backoff_at(RetrySite.ADMIN_CALL, config, random.uniform)
        self._retries = config.integer("retries")
        self._api_timeout_ms = config.integer("default.api.timeout.ms")

    def deadline_ms(self, timeout_ms: int | None) -> float:
        return self._clock.monotonic_ms() + (self._api_timeout_ms if timeout_ms is None else timeout_ms)

    async def call(
        self,
        node: NodeProvider,
        request: RequestSource,
        response: type[M],
        timeout_ms: int | None,
        check: Callable[[M], None] = lambda _response: None,
    ) -> M:
        """Return one response. `check` raises its error; a retriable one is retried."""
        return await self.call_until(self.deadline_ms(timeout_ms), node, request, response, check)

    async def call_until(
        self,
        deadline_ms: float,
        node: NodeProvider,
        request: RequestSource,
        response: type[M],
        check: Callable[[M], None] = lambda _response: None,
    ) -> M:
        retries = _Retries(self, deadline_ms)
        while True:
            try:
                received = await self.call_once(node, request, response, deadline_ms)
                check(received)
            except RetriableException as error:
                await retries.pause(error)
            else:
                return received

    async def call_all_brokers(
        self, request: Request, response: type[M], check: Callable[[M], None], timeout_ms: int | None
    ) -> list[M]:
        deadline_ms = self.deadline_ms(timeout_ms)
        metadata = await self.call_until(
            deadline_ms, least_loaded, request_of(MetadataRequest(topics=[]), oldest=1), MetadataResponse
        )
        return await asyncio.gather(
            *(
                self.call_until(deadline_ms, broker(found.node_id), request, response, check)
                for found in metadata.brokers
            )
        )

    async def call_by_key(
        self,
        keys: Iterable[K],
        lookup: Lookup[K],
        build: Callable[[list[K]], RequestSource],
        response: type[M],
        outcomes: Callable[[M], Mapping[K, V | KafkaException]],
        timeout_ms: int | None,
        retried: RetriedCodes | None = None,
    ) -> Outcomes[K, V]:
        """Return the outcome of each key (Kafka's AdminApiHandler).

        `lookup` finds the nodes of keys, `build` creates the request for the keys of one node, and `outcomes` extracts
        their outcomes from the response. Error codes in `retried`, by default all retriable ones, are retried.
        """

        async def fetch(node: NodeProvider, wanted: list[K]) -> Mapping[K, V | KafkaException]:
            return outcomes(await self.call_once(node, build(wanted), response, deadline_ms))

        wanted = list(dict.fromkeys(keys))
        done: dict[K, V | KafkaException] = {}
        deadline_ms = self.deadline_ms(timeout_ms)
        retries = _Retries(self, deadline_ms)
        while left := [key for key in wanted if key not in done]:
            received, failures = await self._attempt(left, lookup, fetch, deadline_ms)
            for key, found in received.items():
                if _is_retried(found, retried):
                    assert isinstance(found, KafkaException)
                    failures.append(found)
                else:
                    done[key] = found
            if failures:
                try:
                    await retries.pause(failures[0])
                except KafkaException as error:
                    done |= {key: error for key in left if key not in done}
        return Outcomes({key: done[key] for key in wanted})

    async def call_once(self, node: NodeProvider, request: RequestSource, response: type[M], deadline_ms: float) -> M:
        ready = await self._ready_node(node, deadline_ms)
        now_ms = self._clock.monotonic_ms()
        timeout_ms = int(max(0, min(self.network.client.request_timeout_ms, deadline_ms - now_ms)))
        sent = request if isinstance(request, Request) else request(timeout_ms)
        sent.timeout_ms = timeout_ms
        received = await self.network.send(ready, sent, now_ms)
        assert isinstance(received, response), f"expected {response.__name__}, got {type(received).__name__}"
        return received

    async def _attempt(
        self, keys: list[K], lookup: Lookup[K], fetch: Fetch[K, V], deadline_ms: float
    ) -> tuple[dict[K, V | KafkaException], list[KafkaException]]:
        by_node: dict[NodeProvider, list[K]] = {}
        outcomes: dict[K, V | KafkaException] = {}
        failures: list[KafkaException] = []

        async def fetch_from(node: NodeProvider, of_node: list[K]) -> None:
            try:
                outcomes.update(_complete(of_node, await fetch(node, of_node)))
            except RetriableException as error:
                failures.append(error)
            except KafkaException as error:
                outcomes.update(dict.fromkeys(of_node, error))

        try:
            found = await lookup(self, keys, deadline_ms)
        except RetriableException as error:
            return outcomes, [error]
        except KafkaException as error:
            return dict.fromkeys(keys, error), failures
        for key, node in _complete(keys, found).items():
            if isinstance(node, RetriableException):
                failures.append(node)
            elif isinstance(node, KafkaException):
                outcomes[key] = node
            else:
                by_node.setdefault(node, []).append(key)
        await asyncio.gather(*(fetch_from(node, of_node) for node, of_node in by_node.items()))
        return outcomes, failures

    async def _ready_node(self, provide: NodeProvider, deadline_ms: float) -> Node:
        client, metadata = self.network.client, self.network.client.metadata
        while (now_ms := self._clock.monotonic_ms()) < deadline_ms:
            self.network.raise_if_closed()
            metadata.raise_fatal_error()
            node = None if metadata.cluster.is_bootstrap else provide(client, now_ms)
            if node is None:
                self._refresh_metadata()
                await self.network.wait(deadline_ms)
            elif client.ready(node, now_ms):
                return node
            else:
                error = client.authentication_error(node.id)
                if error is not None:
                    raise error
                await self.network.wait(min(deadline_ms, now_ms + client.poll_delay_ms(node.id, now_ms)))
        raise self.network.timeout("no node was ready in time")

    def _refresh_metadata(self) -> None:
        if not self.network.client.metadata.update_requested:
            self.network.client.metadata.request_update()
        self.network.client.wakeup()


class _Retries:
    def __init__(self, calls: AdminCalls, deadline_ms: float) -> None:
        self._calls = calls
        self._deadline_ms = deadline_ms
        self._attempts = 0

    async def pause(self, error: KafkaException) -> None:
        """Wait for the next attempt; raise TimeoutException if time or retries are used up."""
        calls = self._calls
        now_ms = calls._clock.monotonic_ms()
        until_ms = now_ms + calls._backoff.backoff(self._attempts)
        self._attempts += 1
        if now_ms >= self._deadline_ms or self._attempts > calls._retries:
            raise TimeoutException(f"gave up after {self._attempts} attempts: {error}") from error
        if _needs_metadata(error):
            calls._refresh_metadata()
        until_ms = min(until_ms, self._deadline_ms)
        while calls._clock.monotonic_ms() < until_ms:
            await calls.network.wait(until_ms)


def _complete(keys: Iterable[K], found: Mapping[K, V | KafkaException]) -> dict[K, V | KafkaException]:
    return {
        key: found[key] if key in found else KafkaException(f"the broker returned nothing for {key}") for key in keys
    }


def _is_retried(outcome: object, retried: RetriedCodes | None) -> bool:
    return isinstance(outcome, RetriableException) and (retried is None or outcome.code in retried)


def _needs_metadata(error: KafkaException) -> bool:
    return isinstance(error, RefreshRetriableException | DisconnectException) or (
        isinstance(error, ApiException) and error.code == ErrorCode.NOT_CONTROLLER
    )


async def find_controller(
    calls: AdminCalls, keys: Collection[K], deadline_ms: float
) -> Mapping[K, NodeProvider | KafkaException]:
    return dict.fromkeys(keys, controller)
