"""The conditions of a rule, in three parts by when they can be evaluated.

- `hits_route`: API, version and broker; evaluated once per route.
- `hits_client`: client id, software, principal and listener; cached per combination.
- `hits_names`: entities in a request; cached per topic and partition, group and transactional id.
"""

import re
from collections.abc import Collection

from sluice.broker.exchange.registry import HANDLERS
from sluice.broker.throttling.scope import EVERYTHING, Scope
from sluice.protocol.apis import API_KEYS
from sluice.protocol.entities import WHOLE_TOPIC, RequestEntities, entities_of
from sluice.protocol.error_response import ResponseItem
from sluice.protocol.types import GROUP_ID, PARTITION, TOPIC_NAME, TRANSACTIONAL_ID
from sluice.text.error_text import did_you_mean
from sluice.text.patterns import glob

from .conditions import Conditions
from .values import Duration, RuleProblem, parse_ms

API_BY_NAME = {API_KEYS[key].name: key for key in HANDLERS}
_ENTITIES = {
    "topic": TOPIC_NAME,
    "partition": PARTITION,
    "group": GROUP_ID,
    "transactional_id": TRANSACTIONAL_ID,
}
_VERSION = re.compile(r"(\d{0,5})(-?)(\d{0,5})", re.ASCII)
_LAST_VERSION = 0x7FFF

# Client id, name and version of the software, principal, listener.
Client = tuple[str, str, str, str, str]
_CLIENT_ID, _LISTENER = 0, 4


class Match:
    """The conditions of a rule, within a scope. Raises RuleProblem for impossible ones."""

    def __init__(self, rule: Conditions, scope: Scope = EVERYTHING) -> None:
        self.brokers = _numbers(rule.broker, "broker")
        self.partitions = _numbers(rule.partition, "partition")
        self.versions = _versions(rule.version)
        self.named_apis = _named_apis(rule.api)
        self.names = [
            name for name in _ENTITIES if getattr(rule, name) is not None or (name == "topic" and scope.topics)
        ]
        self.apis = self._apis(rule, scope)
        client = (rule.client_id, rule.software_name, rule.software_version, rule.principal, rule.listener)
        self._client = [(number, glob(pattern)) for number, pattern in enumerate(client) if pattern is not None]
        if scope.clients:
            self._client.append((_CLIENT_ID, scope.hits_client))
        self._topic = glob(rule.topic)
        if scope.topics:
            own, in_scope = self._topic, scope.hits_topic
            self._topic = lambda topic: own(topic) and in_scope(topic)
        self._group = glob(rule.group)
        self._transactional_id = glob(rule.transactional_id)
        self.older_than_ms = _milliseconds(rule.connection_older_than, "connection_older_than")
        self.younger_than_ms = _milliseconds(rule.connection_younger_than, "connection_younger_than")
        if None not in (self.older_than_ms, self.younger_than_ms) and self.older_than_ms >= self.younger_than_ms:  # type: ignore[operator]  # neither is None
            problem = f"expected above connection_older_than, got {rule.connection_younger_than}"
            raise RuleProblem("connection_younger_than", problem)

    @property
    def needs_age(self) -> bool:
        return self.older_than_ms is not None or self.younger_than_ms is not None

    @property
    def names_client(self) -> bool:
        return any(number != _LISTENER for number, _ in self._client)

    def hits_route(self, node_id: int, api_key: int, version: int) -> bool:
        first, last = self.versions
        return self.hits_broker(node_id) and api_key in self.apis and first <= version <= last

    def hits_broker(self, node_id: int) -> bool:
        return self.brokers is None or node_id in self.brokers

    def hits_client(self, client: Client) -> bool:
        return all(test(client[number]) for number, test in self._client)

    def hits_listener(self, listener: str) -> bool:
        return all(test(listener) for number, test in self._client if number == _LISTENER)

    def hits_age(self, age_ms: float) -> bool:
        return (self.older_than_ms is None or age_ms > self.older_than_ms) and (
            self.younger_than_ms is None or age_ms < self.younger_than_ms
        )

    def hits_partition(self, topic: str, index: int) -> bool:
        return bool(self._topic(topic)) and (
            self.partitions is None or index == WHOLE_TOPIC or index in self.partitions
        )

    def hits_group(self, group: str) -> bool:
        return bool(self._group(group))

    def hits_transactional_id(self, transactional_id: str) -> bool:
        return bool(self._transactional_id(transactional_id))

    def hits_names(self, named: RequestEntities) -> bool:
        names = self.names
        if ("topic" in names or "partition" in names) and not (
            named.all_topics or any(self.hits_partition(*each) for each in named.partitions)
        ):
            return False
        if "group" in names and not any(map(self.hits_group, named.groups)):
            return False
        return "transactional_id" not in names or any(map(self.hits_transactional_id, named.transactional_ids))

    def hits_part(self, item: ResponseItem) -> bool:
        return (
            (item.topic is None or bool(self._topic(item.topic)))
            and (self.partitions is None or item.partition is None or item.partition in self.partitions)
            and (item.group is None or self.hits_group(item.group))
            and (item.transactional_id is None or self.hits_transactional_id(item.transactional_id))
        )

    def _apis(self, rule: Conditions, scope: Scope) -> frozenset[int]:
        wanted = {*self.names}
        if not self.named_apis:
            if rule.version is not None:
                raise RuleProblem("version", f"expected together with `api`, whose version it is, got {rule.version}")
            return frozenset(key for key in HANDLERS if wanted <= _fields_named(key))
        for key in self.named_apis:
            for name in sorted(wanted - _fields_named(key)):
                able = ", ".join(API_KEYS[each].name for each in HANDLERS if name in _fields_named(each))
                what = name.replace("_", " ")
                if name == "topic" and rule.topic is None:
                    limit = f"rules are limited to topics ({', '.join(scope.topics)})"
                    raise RuleProblem("api", f"{limit}, and {API_KEYS[key].name} requests name none")
                raise RuleProblem(name, f"{API_KEYS[key].name} requests name no {what}; expected one of {able}")
        first, last = self.versions
        served = [(API_KEYS[key].name, HANDLERS[key]) for key in self.named_apis]
        if not any(handler.min_version <= last and first <= handler.max_version for _, handler in served):
            known = "; ".join(f"{name} has {handler.min_version} to {handler.max_version}" for name, handler in served)
            raise RuleProblem("version", f"version not served; {known}, got {rule.version}")
        return frozenset(self.named_apis)


def _fields_named(api_key: int) -> set[str]:
    entities = entities_of(api_key)
    return {name for name, entity in _ENTITIES.items() if entity in entities}


def _named_apis(given: str | list[str] | None) -> list[int]:
    if given is None:
        return []
    if not given:
        raise RuleProblem("api", "expected at least one API. Omit it to match all")
    if isinstance(given, str):
        return [_api_key(given, "api")]
    return [_api_key(name, f"api[{number}]") for number, name in enumerate(given)]


def _api_key(name: str, path: str) -> int:
    key = API_BY_NAME.get(name)
    if key is None:
        hint = did_you_mean(name, API_BY_NAME, f"; expected one of {', '.join(API_BY_NAME)}")
        raise RuleProblem(path, f"unknown API {name!r}{hint}")
    return key


def _numbers(given: int | list[int] | None, path: str) -> Collection[int] | None:
    if given is None:
        return None
    numbers = [given] if isinstance(given, int) else given
    if not numbers:
        raise RuleProblem(path, "expected at least one number. Omit it to match all")
    for number in numbers:
        if number < 0:
            raise RuleProblem(path, f"expected 0 or more, got {number}")
    return frozenset(numbers)


def _versions(given: str | int | None) -> tuple[int, int]:
    if given is None:
        return 0, _LAST_VERSION
    text = str(given).replace(" ", "")
    written = _VERSION.fullmatch(text)
    if written is None or not (written[1] or written[3]):
        raise RuleProblem("version", f"expected a version or a range such as 9, 5-9, -3, 9-, got {given!r}")
    first = int(written[1] or 0)
    last = int(written[3] or _LAST_VERSION) if written[2] else first
    if first > last:
        raise RuleProblem("version", f"expected a range that ends after its start, got {given!r}")
    return first, last


def _milliseconds(given: Duration | None, path: str) -> float | None:
    return None if given is None else parse_ms(given, path)
