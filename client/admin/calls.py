"""How an admin client gets its answers: whom it asks, and when it asks again (Kafka's KafkaAdminClient.Call and its
AdminApiDriver).

Theory of operation. A call has `default.api.timeout.ms`, or what its caller gives it, in all. It is assigned to a node
(the controller, a certain broker, or the least loaded one), waits until that is ready, and is sent with what is left of
its time, at most `request.timeout.ms`. Where the node is lost before that, another is chosen; that is no attempt.
What can be retried (KIP-580) is sent again after a backoff that grows with each attempt of this call, up to `retries`
times; where it was said that somebody else is responsible, metadata is asked for first. When time or retries are used
up, a TimeoutException tells of the last failure.

Calls about many things at once, *keys*, are the same: each key has a node; all keys of a node are asked for together;
those with an error that can be retried are looked up and asked for again, until each has a value or its own error.
Different on purpose: Kafka's driver looks up a coordinator or leader again without a pause; here that waits like the
rest. And the nodes of one round are waited for together.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from random import Random  # noqa: TID251  (the type of what is injected; nothing is drawn from the module itself)
from typing import Generic, TypeVar

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
M = TypeVar("M", bound=Message)

# Chooses a node for a call; None: nobody yet, ask for metadata.
NodeProvider = Callable[[NetworkClient, float], Node | None]
# Makes a request that the broker is given so many milliseconds for.
Ask = Callable[[int], Request]
# Says which node each key is to be asked of, or why there is none.
Lookup = Callable[[Collection[K]], Awaitable[Mapping[K, NodeProvider | KafkaException]]]
# Asks a node for some keys, and says what became of each.
Fetch = Callable[[NodeProvider, list[K]], Awaitable[Mapping[K, V | KafkaException]]]
# The error codes of a part of an answer after which the call is tried again: those that Kafka's handlers name.
RetriedCodes = Collection[int]

# Of calls to the controller: it moved, or wants its quota of changes to be kept (KIP-599).
CONTROLLER_RETRIES: RetriedCodes = frozenset((ErrorCode.NOT_CONTROLLER, ErrorCode.THROTTLING_QUOTA_EXCEEDED))


def least_loaded(client: NetworkClient, now_ms: float) -> Node | None:
    """Any broker that can be had."""
    return client.least_loaded_node(now_ms).node


def controller(client: NetworkClient, now_ms: float) -> Node | None:
    """The controller, as brokers call it who hand on what is for it."""
    return client.metadata.cluster.controller


@cache  # the same for the same broker, so that its keys are found together
def broker(node_id: int) -> NodeProvider:
    """A certain broker."""

    def provide(client: NetworkClient, now_ms: float) -> Node | None:
        return client.metadata.cluster.nodes.get(node_id)

    return provide


class Outcomes(Generic[K, V]):
    """What became of each key: `outcomes[key]` is its value, or raises its error; `all()` has all values, or raises."""

    def __init__(self, by_key: Mapping[K, V | KafkaException]) -> None:
        self._by_key = by_key

    def __getitem__(self, key: K) -> V:
        outcome = self._by_key[key]
        if isinstance(outcome, KafkaException):
            raise outcome
        return outcome

    def __iter__(self) -> Iterator[K]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def all(self) -> dict[K, V]:
        """The values by key; raises the first error, if there is one."""
        return {key: self[key] for key in self._by_key}

    def errors(self) -> dict[K, KafkaException]:
        """The errors by key."""
        return {key: outcome for key, outcome in self._by_key.items() if isinstance(outcome, KafkaException)}


class AdminCalls:
    """The calls of one admin client."""

    def __init__(self, network: AsyncNetwork, config: ClientConfig, random: Random) -> None:
        self.network = network
        self._clock = network.clock
        self._backoff = backoff_at(RetrySite.ADMIN_CALL, config, random.uniform)
        self._retries = config.integer("retries")
        self._api_timeout_ms = config.integer("default.api.timeout.ms")

    def deadline_ms(self, timeout_ms: int | None) -> float:
        """When a call that begins now has to be over."""
        return self._clock.monotonic_ms() + (self._api_timeout_ms if timeout_ms is None else timeout_ms)

    async def call(
        self,
        node: NodeProvider,
        ask: Ask,
        response: type[M],
        deadline_ms: float,
        check: Callable[[M], None] = lambda _response: None,
    ) -> M:
        """One answer. `check` raises what in it is an error; if that can be retried, so is the call."""
        retries = _Retries(self, deadline_ms)
        while True:
            try:
                answer = await self._ask(node, ask, deadline_ms)
                assert isinstance(answer, response), f"{type(answer).__name__} where {response.__name__} was asked for"
                check(answer)
            except RetriableException as error:
                await retries.pause(error)
            else:
                return answer

    async def of_keys(
        self,
        keys: Iterable[K],
        lookup: Lookup[K],
        fetch: Fetch[K, V],
        deadline_ms: float,
        retried: RetriedCodes | None = None,
    ) -> Outcomes[K, V]:
        """What becomes of each key. `retried`: errors of keys that are tried again; None: all that can be."""
        wanted = list(dict.fromkeys(keys))
        done: dict[K, V | KafkaException] = {}
        retries = _Retries(self, deadline_ms)
        while left := [key for key in wanted if key not in done]:
            outcomes, failures = await self._round(left, lookup, fetch)
            for key, outcome in outcomes.items():
                if _is_retried(outcome, retried):
                    assert isinstance(outcome, KafkaException)
                    failures.append(outcome)
                else:
                    done[key] = outcome
            if failures:
                try:
                    await retries.pause(failures[0])
                except KafkaException as error:
                    done |= {key: error for key in left if key not in done}
        return Outcomes({key: done[key] for key in wanted})

    async def of_controller(self, keys: Iterable[K], fetch: Fetch[K, V], deadline_ms: float) -> Outcomes[K, V]:
        """The same, all asked of the controller."""

        async def lookup(wanted: Collection[K]) -> Mapping[K, NodeProvider | KafkaException]:
            return dict.fromkeys(wanted, controller)

        return await self.of_keys(keys, lookup, fetch, deadline_ms, CONTROLLER_RETRIES)

    async def once(self, node: NodeProvider, ask: Ask, response: type[M], deadline_ms: float) -> M:
        """One attempt, for those who try again by themselves."""
        answer = await self._ask(node, ask, deadline_ms)
        assert isinstance(answer, response), f"{type(answer).__name__} where {response.__name__} was asked for"
        return answer

    async def broker_ids(self, deadline_ms: float) -> list[int]:
        """The ids of all brokers, as any of them tells."""
        request = request_of(MetadataRequest(topics=[]), oldest=1)
        answer = await self.call(least_loaded, lambda _: request, MetadataResponse, deadline_ms)
        return [found.node_id for found in answer.brokers]

    async def _round(
        self, keys: list[K], lookup: Lookup[K], fetch: Fetch[K, V]
    ) -> tuple[dict[K, V | KafkaException], list[KafkaException]]:
        """What became of keys that were asked for, and why others could not be asked for now."""
        by_node: dict[NodeProvider, list[K]] = {}
        outcomes: dict[K, V | KafkaException] = {}
        failures: list[KafkaException] = []

        async def fetched(node: NodeProvider, of_node: list[K]) -> None:
            try:
                outcomes.update(_about_each(of_node, await fetch(node, of_node)))
            except RetriableException as error:
                failures.append(error)
            except KafkaException as error:
                outcomes.update(dict.fromkeys(of_node, error))

        try:
            found = await lookup(keys)
        except RetriableException as error:
            return outcomes, [error]
        except KafkaException as error:
            return dict.fromkeys(keys, error), failures
        for key, node in _about_each(keys, found).items():
            if isinstance(node, RetriableException):
                failures.append(node)
            elif isinstance(node, KafkaException):
                outcomes[key] = node
            else:
                by_node.setdefault(node, []).append(key)
        await asyncio.gather(*(fetched(node, of_node) for node, of_node in by_node.items()))
        return outcomes, failures

    async def _ask(self, provide: NodeProvider, ask: Ask, deadline_ms: float) -> Message:
        node = await self._ready_node(provide, deadline_ms)
        now_ms = self._clock.monotonic_ms()
        timeout_ms = int(max(0, min(self.network.client.request_timeout_ms, deadline_ms - now_ms)))
        request = ask(timeout_ms)
        request.timeout_ms = timeout_ms
        return await self.network.send(node, request, now_ms)

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
        raise TimeoutException("no node was ready in time")

    def _refresh_metadata(self) -> None:
        if not self.network.client.metadata.update_requested:
            self.network.client.metadata.request_update()
        self.network.client.wakeup()


class _Retries:
    """The attempts of one call."""

    def __init__(self, calls: AdminCalls, deadline_ms: float) -> None:
        self._calls = calls
        self._deadline_ms = deadline_ms
        self._tries = 0

    async def pause(self, error: KafkaException) -> None:
        """Waits before the next attempt; raises TimeoutException where there is none."""
        calls = self._calls
        now_ms = calls._clock.monotonic_ms()
        until_ms = now_ms + calls._backoff.backoff(self._tries)
        self._tries += 1
        if now_ms >= self._deadline_ms or self._tries > calls._retries:
            raise TimeoutException(f"gave up after {self._tries} attempts: {error}") from error
        if _is_about_whom(error):
            calls._refresh_metadata()
        until_ms = min(until_ms, self._deadline_ms)
        while calls._clock.monotonic_ms() < until_ms:
            await calls.network.wait(until_ms)


def _about_each(keys: Iterable[K], told: Mapping[K, V | KafkaException]) -> dict[K, V | KafkaException]:
    """What a broker told of keys, and of each that it forgot, that it did."""
    return {key: told[key] if key in told else KafkaException(f"the broker said nothing of {key}") for key in keys}


def _is_retried(outcome: object, retried: RetriedCodes | None) -> bool:
    return isinstance(outcome, RetriableException) and (retried is None or outcome.code in retried)


def _is_about_whom(error: KafkaException) -> bool:
    return isinstance(error, RefreshRetriableException | DisconnectException) or (
        isinstance(error, ApiException) and error.code == ErrorCode.NOT_CONTROLLER
    )


def outcome_of(code: int, message: str | None, value: V) -> V | ApiException:
    """A value, or what an error code says."""
    return exception_of(code, message) if code else value
