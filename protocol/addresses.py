"""The addresses of brokers in responses, which a proxy replaces by its own.

One function per API and version, made from the declarations (`V.address`, `V.leader`). If a broker has no address, the
response becomes what Kafka returns for a broker without such a listener:

- The broker is removed from the list. Partitions that it leads have no leader: LEADER_NOT_AVAILABLE in Metadata, -1
  beside the endpoints of KIP-951, since a client that knows a leader but no address of it could retry endlessly.
- A coordinator becomes COORDINATOR_NOT_AVAILABLE. It is not removed, because Java's client fails without its key.

Two kinds of addresses are always withheld:

- Listeners of controllers, which clients of a proxy cannot reach.
- Configs of brokers with addresses. They are sensitive and have no value, like passwords: they name several listeners
  and other nodes, and a client that writes back what it has read must not give the broker the proxy's address.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from operator import attrgetter
from typing import cast

from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.describe_configs import DescribeConfigsResponse
from sluice.protocol.apis.find_coordinator import Coordinator, FindCoordinatorResponse
from sluice.protocol.apis.index import ApiKey
from sluice.protocol.apis.metadata import MetadataResponsePartition

from .errors import ErrorCode
from .message import Field, Message, fields_of
from .types import CONTROLLER

# (node id, host, port) -> (host, port), None if the node has no address.
AddressOf = Callable[[int, str, int], tuple[str, int] | None]
# Replaces the addresses in a response, and returns whether it changed anything.
Rewrite = Callable[[Message, AddressOf], bool]
_Path = Sequence[str]  # the fields from a response to its structs; an array stands for all its elements

ADDRESS_CONFIGS = frozenset(
    {
        *("advertised.listeners", "listeners", "controller.quorum.bootstrap.servers", "controller.quorum.voters"),
        # Of Kafka before 4.0.
        *("advertised.host.name", "advertised.port", "host.name", "port", "zookeeper.connect"),
    }
)


@cache
def rewriter_of(api_key: int, version: int) -> Rewrite | None:
    """Return `rewrite(response, address_of)`; None if responses of this version have no addresses.

    A negative node id with an empty host, as in an error of FindCoordinator, is not an address.
    """
    if api_key == ApiKey.DESCRIBE_CONFIGS:
        return _withhold_configs
    response = API_KEYS[api_key].response
    marked = list(_marked(response, version, lambda field: bool(field.meaning.address)))
    if not marked:
        return None
    ((path, cls),) = marked  # no response has two lists of nodes
    host, port = (field for field in fields_of(cls) if field.meaning.address)
    if host.meaning.address == CONTROLLER:
        return _listeners_rewriter(path)
    if issubclass(cls, Coordinator | FindCoordinatorResponse):
        return _coordinators_rewriter(path)
    (nodes,) = path
    leaders = [above for above, _ in _marked(response, version, lambda field: field.meaning.leader)]
    return _brokers_rewriter(nodes, (host.meaning.address, host.name, port.name), leaders)


def _brokers_rewriter(array: str, names: tuple[str, str, str], leaders: Sequence[_Path]) -> Rewrite:
    node_id, host, port = names
    id_of = attrgetter(node_id)
    address_in = attrgetter(host, port)

    def rewrite(response: Message, address_of: AddressOf) -> bool:
        nodes = getattr(response, array)
        if not nodes:  # nearly every Produce and Fetch
            return False
        changed = False
        removed = set()
        for node in nodes:
            old = address_in(node)
            if id_of(node) < 0 and not old[0]:
                continue
            new = address_of(id_of(node), *old)
            if new is None:
                removed.add(id_of(node))
            elif new != old:
                setattr(node, host, new[0])
                setattr(node, port, new[1])
                changed = True
        if not removed:
            return changed
        setattr(response, array, [node for node in nodes if id_of(node) not in removed])
        for path in leaders:
            _reset_leaders(response, path, removed)
        return True

    return rewrite


def _reset_leaders(response: Message, path: _Path, removed: set[int]) -> None:
    for struct in _structs(response, path):
        if struct.leader_id not in removed:  # type: ignore[attr-defined]  # marked
            continue
        struct.leader_id = -1  # type: ignore[attr-defined]
        if not isinstance(struct, MetadataResponsePartition):
            struct.leader_epoch = -1  # type: ignore[attr-defined]  # of KIP-951
        elif struct.error_code == ErrorCode.NONE:
            struct.error_code = ErrorCode.LEADER_NOT_AVAILABLE


def _coordinators_rewriter(path: _Path) -> Rewrite:
    def rewrite(response: Message, address_of: AddressOf) -> bool:
        changed = False
        for found in cast("Iterator[Coordinator | FindCoordinatorResponse]", _structs(response, path)):
            if found.node_id < 0 and not found.host:
                continue
            new = address_of(found.node_id, found.host, found.port)
            if new == (found.host, found.port):
                continue
            changed = True
            if new is not None:
                found.host, found.port = new
                continue
            found.node_id, found.host, found.port = -1, "", -1
            if found.error_code == ErrorCode.NONE:
                found.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
                found.error_message = ErrorCode.COORDINATOR_NOT_AVAILABLE.message
        return changed

    return rewrite


def _listeners_rewriter(path: _Path) -> Rewrite:
    *above, listeners = path

    def rewrite(response: Message, address_of: AddressOf) -> bool:
        changed = False
        for node in _structs(response, above):
            if getattr(node, listeners):
                setattr(node, listeners, [])
                changed = True
        return changed

    return rewrite


def _withhold_configs(response: Message, address_of: AddressOf) -> bool:
    assert isinstance(response, DescribeConfigsResponse)
    changed = False
    for result in response.results:
        for config in result.configs:
            if config.name in ADDRESS_CONFIGS:
                config.value = None
                config.is_sensitive = changed = True
                for synonym in config.synonyms:
                    synonym.value = None
    return changed


def _marked(
    cls: type[Message], version: int, is_marked: Callable[[Field], bool]
) -> Iterator[tuple[_Path, type[Message]]]:
    """Yield the path to each struct with a marked field, and its class."""
    fields = [field for field in fields_of(cls) if version in field.versions]
    if any(is_marked(field) for field in fields):
        yield (), cls
    for field in fields:
        if field.struct is not None:
            for path, struct in _marked(field.struct, version, is_marked):
                yield (field.name, *path), struct


def _structs(message: Message, path: _Path) -> Iterator[Message]:
    if not path:
        yield message
        return
    value = getattr(message, path[0])
    for each in value if isinstance(value, list) else () if value is None else (value,):
        yield from _structs(each, path[1:])
