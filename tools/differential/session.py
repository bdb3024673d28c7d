"""The requests of one case to one cluster, and the responses that are compared."""

import json
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from sluice.protocol.apis import api_of
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from tests.support.wire import WireClient, frame
from tools.differential.masks import Masks
from tools.differential.requests import create_topics, metadata

T = TypeVar("T")

# Far longer than a broker needs to apply a change; a case that needs all of it fails.
SETTLED_WITHIN_S = 30
# Kafka does not respond to some requests, in which it meets an internal error. Longer than any response takes.
ANSWERED_WITHIN_S = 20
NO_RESPONSE = "no response"
_RETRY_S = 0.05
# Fields by which the items of two lists of different lengths are compared.
_KEYS = ("name", "api_key")
_CREATE_TOPICS_VERSION, _METADATA_VERSION = 7, 12


def until(call: Callable[[], T], condition: Callable[[T], object]) -> T:
    """Repeat a call until its result meets a condition; return that."""
    end = time.monotonic() + SETTLED_WITHIN_S
    while not condition(found := call()):
        assert time.monotonic() < end, f"the condition is not met after {SETTLED_WITHIN_S} s: {found}"
        time.sleep(_RETRY_S)
    return found


class RunningCluster(Protocol):
    """Apache Kafka or sluice."""

    addresses: dict[int, str]  # broker id -> host:port

    def restart(self, *, kill: bool = False) -> None:
        """Stop or kill all brokers, and start them with their data."""


class Session:
    """Connections to a cluster, and the masked responses."""

    def __init__(self, cluster: RunningCluster) -> None:
        self.answers: list[list[Any]] = []
        self.requests: list[Message | None] = []  # of each answer; None of notes
        self._cluster = cluster
        self._clients: dict[tuple[int, str], WireClient] = {}
        self._ports = {int(address.rpartition(":")[2]): node for node, address in cluster.addresses.items()}
        self._masks = Masks(self._ports)

    def close(self) -> None:
        for client in self._clients.values():
            client.socket.close()
        self._clients.clear()

    def call(
        self,
        request: Message,
        version: int | None = None,
        *,
        node: int | None = None,
        client_id: str = "differential",
        unordered: Iterable[str] = (),
        only: Iterable[str] = (),
    ) -> Any:
        """Send a request, and keep the masked response; return the response, or None if the connection was closed.

        Args:
            request: The request.
            version: The newest one by default.
            node: The broker; the first one by default.
            client_id: Each has its own connection.
            unordered: Names of array fields whose order means nothing on Kafka, such as those of a Java HashMap; `*`
                for all.
            only: Names of the fields of the response that are compared; all by default.
        """
        response = self.request(request, version, node=node, client_id=client_id)
        self._keep(request, response, unordered, only)
        return response

    def request(
        self,
        request: Message,
        version: int | None = None,
        *,
        node: int | None = None,
        client_id: str = "differential",
        within_s: float = ANSWERED_WITHIN_S,
    ) -> Any:
        """Send a request whose response is not compared; return the response, or None if the connection was closed.

        After `within_s` without a response, return NO_RESPONSE.
        """
        node = min(self._cluster.addresses) if node is None else node
        client = self._client(node, client_id)
        api = api_of(type(request))
        client.socket.settimeout(within_s)
        try:
            return client.call(request, api.max_version if version is None else version)
        except ConnectionError:
            self._clients.pop((node, client_id)).socket.close()
            return None
        except TimeoutError:
            self._clients.pop((node, client_id)).socket.close()
            return NO_RESPONSE

    def send(self, request: Message, version: int, *, client_id: str = "differential") -> None:
        """Send a request without a response, such as Produce with acks=0, to the first broker."""
        data = frame(request, version, client_id=client_id)
        self._client(min(self._cluster.addresses), client_id).socket.sendall(data)

    def masked(self, response: Any, *, ids: Iterable[bytes] = (), unordered: Iterable[str] = ()) -> Any:
        """Return a response as plain data whose symbols do not depend on earlier responses, for `note`.

        `ids` have the first symbols; `unordered` is as in `call`.
        """
        if response is None or response == NO_RESPONSE:
            return "connection closed" if response is None else NO_RESPONSE
        masks = Masks(self._ports)
        for one in ids:
            masks.symbol("id", one)
        return _sorted(masks.message(response), frozenset(unordered))

    def _client(self, node: int, client_id: str) -> WireClient:
        client = self._clients.get((node, client_id))
        if client is None:
            client = self._clients[node, client_id] = WireClient(self._cluster.addresses[node], client_id)
        return client

    def eventually(
        self, request: Message, version: int | None, condition: Callable[[Any], bool], **options: Any
    ) -> Any:
        """Repeat a request until its response meets a condition; keep only that response, as `call` does."""
        kept = {name: options.pop(name, ()) for name in ("unordered", "only")}
        response = self.wait_for(request, condition, version, **options)
        self._keep(request, response, **kept)
        return response

    def wait_for(
        self, request: Message, condition: Callable[[Any], bool], version: int | None = None, **options: Any
    ) -> Any:
        """Repeat a request, without comparing the responses, until one meets a condition; return that."""
        return until(partial(self.request, request, version, **options), condition)

    def exchange(self, label: str, data: bytes) -> None:
        """Send bytes on a new connection, and compare those of the response."""
        host, _, port = self._cluster.addresses[min(self._cluster.addresses)].rpartition(":")
        with (
            socket.create_connection((host, int(port)), SETTLED_WITHIN_S) as connection,
            connection.makefile("rb") as response,
        ):
            connection.sendall(len(data).to_bytes(4) + data)
            size = int.from_bytes(response.read(4))
            self.note(label, response.read(size).hex(" ") if size else "connection closed")

    def note(self, label: str, value: object) -> None:
        """Compare a value that a case has found, such as a duration in steps of a second."""
        self.answers.append([label, value])
        self.requests.append(None)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        replication_factor: int = 1,
        configs: dict[str, str] | None = None,
        assignments: Sequence[list[int]] = (),
    ) -> bytes:
        """Create a topic, without comparing the response, and wait for its leaders; return its id.

        `assignments` are the brokers of each partition.
        """
        topic = {
            "name": name,
            "num_partitions": -1 if assignments else partitions,
            "replication_factor": -1 if assignments else replication_factor,
            "assignments": [
                {"partition_index": index, "broker_ids": brokers} for index, brokers in enumerate(assignments)
            ],
            "configs": [{"name": key, "value": value} for key, value in (configs or {}).items()],
        }
        created = self.request(create_topics(topic), _CREATE_TOPICS_VERSION).topics[0]
        assert created.error_code == ErrorCode.NONE, created
        self.wait_for_leaders(name)
        topic_id: bytes = created.topic_id
        self._masks.symbol("id", topic_id)  # so that the symbol depends on the order of creation alone
        return topic_id

    def wait_for_leaders(self, name: str) -> None:
        """Wait until every broker knows the topic, and each partition has a leader."""

        def has_leaders(response: Any) -> bool:
            (topic,) = response.topics
            found = [topic.error_code, *(each.error_code for each in topic.partitions)]
            return len(found) > 1 and not any(found)

        for node in self._cluster.addresses:
            self.wait_for(metadata(name), has_leaders, _METADATA_VERSION, node=node)

    def restart(self, *, kill: bool = False) -> None:
        """Stop or kill the cluster, and start it with its data. The layout needs a name of its own, and DISK alone."""
        self.close()
        self._cluster.restart(kill=kill)

    def _keep(self, request: Message, response: Any, unordered: Iterable[str] = (), only: Iterable[str] = ()) -> None:
        name = api_of(type(request)).name
        masked: Any = "connection closed" if response is None else response
        if isinstance(response, Message):
            masked = self._masks.message(response)
        if only and isinstance(response, Message):
            masked = {key: masked[key] for key in only if key in masked}
        self.answers.append([name, _sorted(masked, frozenset(unordered))])
        self.requests.append(request)


def _sorted(value: Any, unordered: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_sorted(item, unordered) for item in value]
    if not isinstance(value, dict):
        return value
    found = {name: _sorted(item, unordered) for name, item in value.items()}
    for name, part in found.items():
        if isinstance(part, list) and (name in unordered or "*" in unordered):
            part.sort(key=json.dumps)
    return found


def differences(expected: Any, actual: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Return the paths at which two masked answers differ, with both values."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        keys = list(expected) + [key for key in actual if key not in expected]
        return [
            found
            for key in keys
            for found in differences(expected.get(key), actual.get(key), f"{path}.{key}" if path else str(key))
        ]
    if isinstance(expected, list) and isinstance(actual, list):
        for key in _KEYS:
            one, other = (
                {item.get(key): item for item in each if isinstance(item, dict)} for each in (expected, actual)
            )
            are_unique = len(one) == len(expected) > 1 and len(other) == len(actual) > 1
            if len(expected) != len(actual) and are_unique:
                return differences(one, other, path)
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [
            found
            for index, (one, other) in enumerate(zip(expected, actual, strict=True))
            for found in differences(one, other, f"{path}[{index}]")
        ]
    return [] if expected == actual else [(path, expected, actual)]


def compare(expected: list[list[Any]], actual: list[list[Any]]) -> list[tuple[str, Any, Any]]:
    """Return the differences of two cases; a path is `<step> <API>.<field>...`."""
    found = []
    for step, (one, other) in enumerate(zip(expected, actual, strict=False)):
        label = f"{step} {one[0]}"
        found += [(label, one[0], other[0])] if one[0] != other[0] else []
        if one[1] != NO_RESPONSE:  # if Kafka does not respond, any response is as good
            found += differences(one[1], other[1], label)
    if len(expected) != len(actual):
        found.append(("number of answers", len(expected), len(actual)))
    return found
