"""Error responses of any API and version.

The levels of a response are derived from the declarations: each field with an error code, the lists that contain it,
and their counterparts in the request (`V.answers`). So an error response needs only the request, as in Kafka's
`AbstractRequest.getErrorResponse`, but can also be for only some topics or partitions:

    fail       a request -> the response in which everything failed
    split      a request -> the response to the failed part, and a request with the rest
    merge      both responses -> one, in the request's order
    overwrite  parts of an existing response

A failed item keeps its key (`V.entity`, `V.map_key`). Its other fields have their defaults or `V.on_error`.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cache
from typing import NamedTuple

from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

from .entities import Topics, name_of
from .error_codes import GROUP, ITEM, PARTITION, TOP, TOPIC, level_of_items
from .errors import ErrorCode
from .message import Field, Message, fields_of
from .types import TOPIC_ID, TOPIC_NAME


class ResponseItem(NamedTuple):
    """The entities of an item; None: its lists have no such entity."""

    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None


Fails = Callable[[ResponseItem], bool]


class ListStep(NamedTuple):
    response_list: str
    request_list: str  # its field in the request, "" if there is none
    level: str
    item: type[Message]


class ErrorLevel(NamedTuple):
    steps: tuple[ListStep, ...]

    @property
    def name(self) -> str:
        return self.steps[-1].level if self.steps else TOP

    @property
    def is_in_request(self) -> bool:
        return all(step.request_list for step in self.steps)


class Split(NamedTuple):
    """A request that fails in part: the response to that part, and the rest of the request, None if empty."""

    failed: Message
    rest: Message | None


@cache
def levels_of(api_key: int, version: int) -> dict[str, ErrorLevel]:
    api = API_KEYS[api_key]
    found: dict[str, ErrorLevel] = {}
    for level in sorted(_levels(api.response, api.request, version, ()), key=lambda level: len(level.steps)):
        found.setdefault(level.name, level)
    return found


def level_of(api_key: int, version: int, name: str) -> ErrorLevel | None:
    """Return the named level; if this version lacks it, the level with its errors, or None."""
    levels = levels_of(api_key, version)
    if name not in levels:
        code = _error_code(API_KEYS[api_key].response)
        if name == TOP and code is not None and not code.meaning.errors_fall_back:
            return None
        name = TOP if name == GROUP and TOP in levels else next(reversed(levels))
    return levels[name]


def whole(api_key: int, request: Message, code: ErrorCode) -> Message:
    response = _failed(API_KEYS[api_key].response, code)
    if API_KEYS[api_key].name == "JoinGroup":  # the response has the rejected member's id (KIP-394)
        response.member_id = request.member_id  # type: ignore[attr-defined]  # both have it
    return response


def fail(api_key: int, version: int, request: Message, code: ErrorCode, message: str | None = None) -> Message:
    """Return the response in which everything failed, with `message` beside each code."""
    if isinstance(request, AlterUserScramCredentialsRequest):
        return _no_user_altered(request, code)
    response = _failed(API_KEYS[api_key].response, code, None, message)
    _fail_lists(response, version, request, code, message)
    return response


def split(
    api_key: int, version: int, level: ErrorLevel, request: Message, code: ErrorCode, fails: Fails, topics_by_id: Topics
) -> Split | None:
    """Return the failed part and the rest; None if the request does not list the items of this level."""
    if isinstance(request, AlterUserScramCredentialsRequest):
        return Split(_no_user_altered(request, code), None)
    if not level.is_in_request:
        return None
    step = level.steps[0]
    items = getattr(request, step.request_list)
    if not items:
        return None
    divided = _Splitter(code, fails, topics_by_id).divide(level.steps, items, ResponseItem())
    if divided is None:
        return None
    failed, rest = divided
    response = API_KEYS[api_key].response()
    setattr(response, step.response_list, failed)
    return Split(response, _with(request, step.request_list, rest) if rest else None)


def merge(level: ErrorLevel, request: Message, response: Message, failed: Message) -> None:
    step = level.steps[0]
    items, failures = getattr(response, step.response_list), getattr(failed, step.response_list)
    setattr(response, step.response_list, _merged(level.steps, getattr(request, step.request_list), items, failures))


def overwrite(level: ErrorLevel, response: Message, code: ErrorCode, fails: Fails, topics_by_id: Topics) -> int:
    return _overwrite(level.steps, response, code, fails, topics_by_id, ResponseItem())


def _no_user_altered(request: AlterUserScramCredentialsRequest, code: ErrorCode) -> Message:
    users = {one.name for one in request.deletions} | {one.name for one in request.upsertions}
    results = [
        AlterUserScramCredentialsResult(user=user, error_code=code, error_message=None) for user in sorted(users)
    ]
    return AlterUserScramCredentialsResponse(results=results)


# -- levels ------------------------------------------------------------------------------------------------------------


def _levels(
    response: type[Message], request: type[Message] | None, version: int, steps: tuple[ListStep, ...]
) -> Iterator[ErrorLevel]:
    for field in fields_of(response):
        if version not in field.versions:
            continue
        if field.meaning.errors is not None:
            yield ErrorLevel(steps)
        elif field.is_array and field.struct is not None:
            requested = _request_list(field, request, version)
            level = level_of_items(field.struct)
            step = ListStep(field.name, "" if requested is None else requested.name, level, field.struct)
            yield from _levels(field.struct, None if requested is None else requested.struct, version, (*steps, step))


def _request_list(response_list: Field, request: type[Message] | None, version: int) -> Field | None:
    if request is None:
        return None
    fields = {field.name: field for field in fields_of(request) if field.is_array and version in field.versions}
    names = (response_list.meaning.answers or response_list.name).split()
    return next((fields[name] for name in names if name in fields), None)


def _error_code(cls: type[Message]) -> Field | None:
    return next((field for field in fields_of(cls) if field.meaning.errors is not None), None)


@cache
def _keys(cls: type[Message]) -> tuple[Field, ...]:
    return tuple(
        field
        for field in fields_of(cls)
        if field.meaning.map_key or (field.meaning.entity is not None and not field.is_array)
    )


def _item(step: ListStep, item: object, above: ResponseItem, topics_by_id: Topics) -> ResponseItem:
    if step.level == ITEM:
        return above
    if step.level == TOPIC:
        return above._replace(topic=_topic_name(item, topics_by_id))
    key = getattr(item, _keys(type(item))[0].name) if isinstance(item, Message) else item
    if step.level == PARTITION:
        assert isinstance(key, int)
        return above._replace(partition=key)
    assert isinstance(key, str)
    return above._replace(group=key) if step.level == GROUP else above._replace(transactional_id=key)


def _topic_name(item: object, topics_by_id: Topics) -> str:
    if not isinstance(item, Message):
        assert isinstance(item, str)
        return item
    named = {field.meaning.entity: getattr(item, field.name) for field in _keys(type(item))}
    return named.get(TOPIC_NAME) or name_of(named.get(TOPIC_ID, b""), topics_by_id)


# -- partial failures --------------------------------------------------------------------------------------------------


class _Splitter(NamedTuple):
    code: ErrorCode
    fails: Fails
    topics_by_id: Topics

    def divide(
        self, steps: Sequence[ListStep], items: Sequence[object], above: ResponseItem
    ) -> tuple[list[Message], list[object]] | None:
        step, deeper = steps[0], steps[1:]
        failed: list[Message] = []
        rest: list[object] = []
        for item in items:
            about = _item(step, item, above, self.topics_by_id)
            if not deeper:
                if self.fails(about):
                    failed.append(_failed(step.item, self.code, item))
                else:
                    rest.append(item)
                continue
            below = getattr(item, deeper[0].request_list)
            divided = None if below is None else self.divide(deeper, below, about)
            if divided is None:
                return None
            if divided[0]:
                response = _same(step.item, item)
                setattr(response, deeper[0].response_list, divided[0])
                failed.append(response)
            if divided[1] or not below:
                assert isinstance(item, Message)
                rest.append(_with(item, deeper[0].request_list, divided[1]))
        return failed, rest


def _merged(
    steps: Sequence[ListStep], requested: Sequence[object], items: Sequence[Message], failed: Sequence[Message]
) -> list[Message]:
    step, deeper = steps[0], steps[1:]
    merged = {_identity(item): item for item in items}
    by_identity = {_identity(_same(step.item, item)): item for item in requested}
    for item in failed:
        identity = _identity(item)
        existing = merged.get(identity)
        if existing is None or not deeper:
            merged[identity] = item
            continue
        name = deeper[0].response_list
        below = _merged(
            deeper, getattr(by_identity[identity], deeper[0].request_list), getattr(existing, name), getattr(item, name)
        )
        setattr(existing, name, below)
    order = {identity: number for number, identity in enumerate(by_identity)}
    return sorted(merged.values(), key=lambda item: order.get(_identity(item), len(order)))


def _overwrite(
    steps: Sequence[ListStep],
    response: Message,
    code: ErrorCode,
    fails: Fails,
    topics_by_id: Topics,
    above: ResponseItem,
) -> int:
    step, deeper = steps[0], steps[1:]
    items: list[Message] = getattr(response, step.response_list)
    count = 0
    for number, item in enumerate(items):
        about = _item(step, item, above, topics_by_id)
        if deeper:
            count += _overwrite(deeper, item, code, fails, topics_by_id, about)
        elif fails(about):
            items[number] = _failed(step.item, code, item)
            count += 1
    return count


def _fail_lists(response: Message, version: int, request: Message, code: ErrorCode, message: str | None) -> None:
    for field in fields_of(type(response)):
        if version not in field.versions or not field.is_array or field.struct is None:
            continue
        requested = _request_list(field, type(request), version)
        if requested is None or not (_keys(field.struct) or _error_code(field.struct)):
            continue
        failed: list[Message] = getattr(response, field.name)
        for item in getattr(request, requested.name) or ():
            failed.append(_failed(field.struct, code, item, message))
            if isinstance(item, Message):
                _fail_lists(failed[-1], version, item, code, message)


def _failed(cls: type[Message], code: ErrorCode, like: object = None, message: str | None = None) -> Message:
    item = cls() if like is None else _same(cls, like)
    for field in fields_of(cls):
        value = field.meaning.on_error
        if field.meaning.errors is not None:
            value = code
        elif value == "message":
            value = code.message
        elif value == "default" or (value == "kept" and not isinstance(like, cls)):
            continue
        elif value == "kept":
            value = getattr(like, field.name)
        setattr(item, field.name, value)
    if message is not None and _error_code(cls) is not None and hasattr(item, "error_message"):
        item.error_message = message
    return item


def _same(cls: type[Message], like: object) -> Message:
    item = cls()
    for field in _keys(cls):
        if not isinstance(like, Message):
            setattr(item, field.name, like)
            break
        for name in (field.name, field.meaning.answers):
            if name and hasattr(like, name):
                setattr(item, field.name, getattr(like, name))
                break
    return item


def _identity(item: Message) -> tuple[object, ...]:
    return tuple(repr(getattr(item, field.name)) for field in _keys(type(item)))


def _with(message: Message, name: str, value: object) -> Message:
    changed = copy(message)
    setattr(changed, name, value)
    return changed
