"""The topics, partitions, groups and transactional ids that a request names, for the journal and fault rules.

One function per API is generated from the declarations (`V.entity`, `V.selects_all`) on first use.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, Protocol, cast

from sluice.protocol.apis import API_KEYS, Api
from sluice.protocol.codec.compile import load
from sluice.protocol.codec.source import Source

from .message import Field, Message, fields_of
from .types import GROUP_ID, PARTITION, TOPIC_ID, TOPIC_NAME, TRANSACTIONAL_ID, Range

WHOLE_TOPIC = -1  # instead of a partition's index


class NamedTopic(Protocol):
    @property
    def name(self) -> str: ...


Topics = Mapping[bytes, NamedTopic]
# Returns (topic name, partition index or WHOLE_TOPIC), group ids, transactional ids.
Read = Callable[[Message, Topics], tuple[Sequence[tuple[str, int]], Sequence[str], Sequence[str]]]
SelectsAll = Callable[[Message, int], bool]
_VARIABLES = {
    TOPIC_NAME: "partitions",
    TOPIC_ID: "partitions",
    PARTITION: "partitions",
    GROUP_ID: "groups",
    TRANSACTIONAL_ID: "transactional_ids",
}


class RequestEntities(NamedTuple):
    partitions: Sequence[tuple[str, int]]
    groups: Sequence[str] = ()
    transactional_ids: Sequence[str] = ()
    all_topics: bool = False


def name_of(topic_id: bytes, topics_by_id: Topics) -> str:
    topic = topics_by_id.get(topic_id)
    return topic_id.hex() if topic is None else topic.name


@cache
def reader_of(api_key: int) -> Read:
    """Return `read(request, topics_by_id)`."""
    api = API_KEYS[api_key]
    used = {_VARIABLES[entity] for entity in _entities_in(api.request)}
    return cast("Read", _reader(api, used)) if used else _read_nothing


def _reader(api: Api, used: Collection[str]) -> Callable[..., object]:
    source = Source()
    source.use("name_of", name_of)
    source.begin_function("def read(request, topics_by_id):")
    for variable in sorted(used):
        source.line(f"{variable} = []")
    _read_struct(source, api.request, "request")
    source.line("return " + ", ".join(each if each in used else "()" for each in dict.fromkeys(_VARIABLES.values())))
    return load(source, "read", f"<sluice entities of {api.name}Request>")


@cache
def all_topics_selector(api_key: int) -> SelectsAll:
    """Return `selects_all(request, version)`: whether a request selects all topics."""
    api = API_KEYS[api_key]
    source = Source()
    source.begin_function("def selects_all(request, version):")
    _test_struct(source, api.request, "request")
    source.line("return False")
    return cast("SelectsAll", load(source, "selects_all", f"<sluice selection of {api.name}Request>"))


@cache
def entities_of(api_key: int) -> frozenset[str]:
    """Return the kinds of entities by which requests of an API differ: TOPIC_NAME, PARTITION, GROUP_ID and so on.

    PARTITION also if only the response has an error per partition (Metadata).
    """
    api = API_KEYS[api_key]
    found = {TOPIC_NAME if entity == TOPIC_ID else entity for entity in _entities_in(api.request)}
    if TOPIC_NAME in found and _has_partition_errors(api.response):
        found.add(PARTITION)
    return frozenset(found)


def _read_nothing(request: Message, topics_by_id: Topics) -> tuple[tuple[()], tuple[()], tuple[()]]:
    return (), (), ()


def _entities_in(cls: type[Message]) -> Iterator[str]:
    for field in fields_of(cls):
        entity = field.meaning.entity
        if entity is not None:
            yield from (entity,) if isinstance(entity, str) else entity.values()
        elif field.struct is not None:
            yield from _entities_in(field.struct)


def _has_partition_errors(cls: type[Message]) -> bool:
    fields = fields_of(cls)
    if any(field.meaning.errors is not None for field in fields) and _field(cls, PARTITION) is not None:
        return True
    return any(field.struct is not None and _has_partition_errors(field.struct) for field in fields)


def _field(cls: type[Message], entity: str) -> Field | None:
    return next((field for field in fields_of(cls) if field.meaning.entity == entity and not field.is_array), None)


# -- generated source --------------------------------------------------------------------------------------------------


def _read_struct(source: Source, cls: type[Message], variable: str) -> None:
    if (name := _topic_name(cls, variable)) is not None:
        _read_topic(source, cls, variable, name)
        return
    for field in fields_of(cls):
        entity, value = field.meaning.entity, _value(field, variable)
        if isinstance(entity, str):
            _read_value(source, field, entity, value)
        elif entity is not None:
            for kind, each in entity.items():
                source.line(f"if {variable}.{field.meaning.entity_by} == {kind}:")
                source.indent()
                _read_value(source, field, each, value)
                source.dedent()
        elif field.struct is not None and any(_entities_in(field.struct)):
            item = _begin_struct(source, field, value)
            _read_struct(source, field.struct, item)
            source.dedent()


def _read_value(source: Source, field: Field, entity: str, value: str) -> None:
    if field.is_array and entity == TOPIC_NAME:
        source.line(f"partitions += [(name, {WHOLE_TOPIC}) for name in {value}]")
    elif field.is_array:
        source.line(f"{_VARIABLES[entity]} += filter(None, {value})")
    elif entity == TOPIC_NAME:  # the sink topic of a Streams topology
        source.line(f"if {value}:")
        source.line(f"    partitions.append(({value}, {WHOLE_TOPIC}))")
    else:
        source.line(f"if {value}:")
        source.line(f"    {_VARIABLES[entity]}.append({value})")


def _topic_name(cls: type[Message], variable: str) -> str | None:
    name, topic_id = _field(cls, TOPIC_NAME), _field(cls, TOPIC_ID)
    if name is not None and topic_id is None and name.null.first <= name.null.last:
        return None
    sources = [f"{variable}.{name.name}"] if name is not None else []
    if topic_id is not None:
        sources.append(f"name_of({variable}.{topic_id.name}, topics_by_id)")
    return " or ".join(sources) or None


def _read_topic(source: Source, cls: type[Message], variable: str, name: str) -> None:
    source.line(f"name = {name}")
    whole = f"partitions.append((name, {WHOLE_TOPIC}))"
    for field in fields_of(cls):
        if not field.is_array:
            continue
        index = None if field.struct is None else _field(field.struct, PARTITION)
        if index is not None or field.meaning.entity == PARTITION:
            item = _begin_loop(source, field, f"{variable}.{field.name}")
            source.line(f"partitions.append((name, {item if index is None else f'{item}.{index.name}'}))")
            source.dedent()
            source.line(f"if not {variable}.{field.name}:")
            source.line(f"    {whole}")
            return
    source.line(whole)


def _test_struct(source: Source, cls: type[Message], variable: str) -> None:
    for field in fields_of(cls):
        for selection in filter(None, field.meaning.selects_all.split(", ")):
            kind, _, versions = selection.partition(" ")
            test = f"{variable}.{field.name} is None" if kind == "null" else f"{variable}.{field.name} == []"
            if versions:
                only = Range(versions)
                test += f" and {only.first} <= version <= {only.last}"
            source.line(f"if {test}:")
            source.line("    return True")
        if field.struct is not None and _selects_all_in(field.struct):
            item = _begin_struct(source, field, _value(field, variable))
            _test_struct(source, field.struct, item)
            source.dedent()


def _selects_all_in(cls: type[Message]) -> bool:
    return any(
        field.meaning.selects_all or (field.struct is not None and _selects_all_in(field.struct))
        for field in fields_of(cls)
    )


def _begin_struct(source: Source, field: Field, value: str) -> str:
    if field.is_array:
        return _begin_loop(source, field, value)
    source.line(f"if {value} is not None:")
    source.indent()
    return value


def _begin_loop(source: Source, field: Field, value: str) -> str:
    item = source.name(f"each_{field.name}")
    source.line(f"for {item} in {value}:")
    source.indent()
    return item


def _value(field: Field, variable: str) -> str:
    value = f"{variable}.{field.name}"
    return f"({value} or ())" if field.is_array and field.null.first <= field.null.last else value
