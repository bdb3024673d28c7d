"""Answers with an error code, of any API and version: where the code stands, and what stands beside it.

The levels of an answer are read off the message declarations: each place that has an error code, with the lists that
lead there and, of each list, what it is called in the request. So the failed part of an answer can be made from the
request alone, as Kafka's `AbstractRequest.getErrorResponse` does, but also for some of its topics or partitions:

    split      a request into the answer of what fails and a request for the rest
    merge      the answer to the rest with that of what failed, in the order of the request
    overwrite  what is to fail in an answer that is there

A failed item keeps what says which one it is; all else is as in an answer that has nothing to tell (offsets are -1).
"""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cache
from typing import NamedTuple

from sluice.broker.requests.request_names import GROUP_IDS, PARTITIONS, TOPICS, TRANSACTIONAL_IDS, Topics, name_of
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Field, Message, fields_of

TOP, GROUP, TRANSACTION, TOPIC, PARTITION, ITEM = "top", "group", "transaction", "topic", "partition", "item"

# What the lists of an answer may be called in the request, where that is not the same.
_ASKED = {
    "responses": ("topic_data", "topics", "topic_names", "resources"),
    "partition_responses": ("partition_data",),
    "partitions": ("partitions", "partition_indexes"),
    "groups": ("groups", "group_ids"),
    "coordinators": ("coordinator_keys",),
    "results": ("creations", "resources", "groups_names", "topics", "users"),
    "results_by_transaction": ("transactions",),
    "topic_results": ("topics",),
    "results_by_partition": ("partitions",),
    "results_by_topic_v3_and_below": ("v3_and_below_topics",),
    "filter_results": ("filters",),
    "replica_election_results": ("topic_partitions",),
    "partition_result": ("partitions",),
    "transaction_states": ("transactional_ids",),
}
# Answers whose lists are not those of the request: what they list is the broker's to say.
_UNASKED = {"AlterReplicaLogDirs", "DescribeLogDirs"}
# Errors of the whole answer that came with it: no partition and no topic can have them.
_ONLY_AT_TOP = {"Fetch", "Metadata"}
_NOT_ANSWERED = {"matching_acls"}  # errors of single deletions: whether a filter as a whole failed stands above them
_CODE_FIELDS = ("error_code", "partition_error_code")
_MESSAGE = "error_message"
# What says of an item which one it is. The first of `_KEYS` that an item has is what a plain value in the request is.
_KEYS = ("partition_index", "partition_id", "group_id", "key", "transactional_id", "name", "user")
_IDENTITY = (
    *_KEYS,
    "topic",
    "topic_name",
    "topic_id",
    "index",
    "partition",
    "member_id",
    "group_instance_id",
    "resource_type",
    "resource_name",
    "producer_id",
    "entity",
    "replica_nodes",
    "isr_nodes",
)
_ASKED_AS = {"topic_name": "name", "user": "name"}
_TOPIC_KEYS = ("topic", "topic_name", "name")
# What of a `Where` the items of a list say, by what they are, and the names they have for it.
_KEYS_OF = {
    PARTITION: ("partition", ("index", "partition_index", "partition_id", "partition")),
    GROUP: ("group", ("group_id",)),
    TRANSACTION: ("transactional_id", ("transactional_id",)),
}
# What a failed part of an answer says where the default of the field would say something.
_FAILED = {
    "base_offset": -1,
    "committed_offset": -1,
    "low_watermark": -1,
    "high_watermark": -1,
    "node_id": -1,
    "port": -1,
    "leader_id": -1,
    "producer_epoch": -1,
}
_TELLS_MESSAGE = {"FindCoordinatorResponse", "Coordinator"}  # others leave it to the client to say what a code means
_KEEPS_MEMBER = {"JoinGroup"}  # a member that is refused may know its id from the answer (KIP-394)


class Where(NamedTuple):
    """What an item of an answer is about, as far as its lists say; None: they do not."""

    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None


Fails = Callable[[Where], bool]


class Step(NamedTuple):
    """A list on the way to an error code."""

    answered: str  # the list in the answer
    asked: str  # the same in the request, "" where that has none
    kind: str  # of what it is a list
    item: type[Message]  # in the answer


class Level(NamedTuple):
    """One place in the answers of an API's version that has an error code."""

    steps: tuple[Step, ...]
    field: str

    @property
    def name(self) -> str:
        return self.steps[-1].kind if self.steps else TOP

    @property
    def is_asked(self) -> bool:
        """Whether the request lists what the answer lists."""
        return all(step.asked for step in self.steps)


class Split(NamedTuple):
    """A request of which something fails: the answer to that, and what is left of the request, None if nothing is."""

    failed: Message
    rest: Message | None


@cache
def levels_of(api_key: int, version: int) -> dict[str, Level]:
    """The levels of an answer by their names, the deepest last. A level that there is twice is told on the deeper."""
    api = API_KEYS[api_key]
    found = _levels(api.response, None if api.name in _UNASKED else api.request, version, ())
    return {level.name: level for level in sorted(found, key=lambda level: len(level.steps))}


def level_of(api_key: int, version: int, name: str) -> Level | None:
    """The level of this name or, in a version that has none, the one that told such errors before; None: none did."""
    levels = levels_of(api_key, version)
    if name not in levels:
        if name == TOP and API_KEYS[api_key].name in _ONLY_AT_TOP:
            return None
        name = TOP if name == GROUP and TOP in levels else next(reversed(levels))
    return levels[name]


def whole(api_key: int, request: Message, code: ErrorCode) -> Message:
    """An answer that fails as a whole."""
    api = API_KEYS[api_key]
    answer = _failed(api.response, code, "error_code")
    if API_KEYS[api_key].name in _KEEPS_MEMBER:
        _copy(request, answer, ("member_id",))
    return answer


def split(
    api_key: int, version: int, level: Level, request: Message, code: ErrorCode, fails: Fails, topics_by_id: Topics
) -> Split | None:
    """None where the request does not list what is to fail: a list that is null, or empty, stands for all."""
    if API_KEYS[api_key].name == "AlterUserScramCredentials":
        return Split(_no_user_altered(request, code), None)
    if not level.is_asked:
        return None
    step = level.steps[0]
    items = getattr(request, step.asked)
    if not items:
        return None
    splitter = _Splitter(level.field, code, fails, topics_by_id)
    divided = splitter.divide(level.steps, items, Where())
    if divided is None:
        return None
    failed, rest = divided
    answer = API_KEYS[api_key].response()
    setattr(answer, step.answered, failed)
    return Split(answer, _with(request, step.asked, rest) if rest else None)


def merge(level: Level, request: Message, answer: Message, failed: Message) -> None:
    """Puts what failed into the answer to the rest, in the order of `request`, which is the one that came."""
    step = level.steps[0]
    answers, failures = getattr(answer, step.answered), getattr(failed, step.answered)
    setattr(answer, step.answered, _merged(level.steps, getattr(request, step.asked), answers, failures))


def overwrite(level: Level, answer: Message, code: ErrorCode, fails: Fails, topics_by_id: Topics) -> int:
    """Lets parts of an answer fail; returns how many."""
    return _overwrite(level.steps, level.field, answer, code, fails, topics_by_id, Where())


def _no_user_altered(request: Message, code: ErrorCode) -> Message:
    """Of two lists in the request one comes out, of each user once."""
    assert isinstance(request, AlterUserScramCredentialsRequest)
    users = dict.fromkeys([one.name for one in request.deletions] + [one.name for one in request.upsertions])
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user=user, error_code=code, error_message=None) for user in users]
    )


# -- levels ------------------------------------------------------------------------------------------------------------


def _levels(
    answer: type[Message], request: type[Message] | None, version: int, steps: tuple[Step, ...]
) -> Iterator[Level]:
    for field in fields_of(answer):
        if version not in field.versions:
            continue
        if field.name in _CODE_FIELDS:
            yield Level(steps, field.name)
        elif field.is_array and field.struct is not None and field.name not in _NOT_ANSWERED:
            asked = _asked(field.name, request, version)
            step = Step(field.name, "" if asked is None else asked.name, _kind(field.name, asked), field.struct)
            yield from _levels(field.struct, None if asked is None else asked.struct, version, (*steps, step))


def _asked(answered: str, request: type[Message] | None, version: int) -> Field | None:
    if request is None:
        return None
    names = _ASKED.get(answered, (answered,))
    fields = {field.name: field for field in fields_of(request) if field.is_array and version in field.versions}
    return next((fields[name] for name in names if name in fields), None)


def _kind(answered: str, asked: Field | None) -> str:
    name = answered if asked is None else asked.name
    for kind, names in ((TOPIC, TOPICS), (PARTITION, PARTITIONS), (GROUP, GROUP_IDS), (TRANSACTION, TRANSACTIONAL_IDS)):
        if name in names:
            return kind
    return ITEM


def _where(step: Step, item: object, above: Where, topics_by_id: Topics) -> Where:
    """What an item of a request or an answer is about."""
    if step.kind == TOPIC:
        return above._replace(topic=_topic_name(item, topics_by_id))
    keys = _KEYS_OF.get(step.kind)
    return above if keys is None else Where(**{**above._asdict(), keys[0]: _key(item, keys[1])})


def _topic_name(item: object, topics_by_id: Topics) -> str:
    name = _key(item, _TOPIC_KEYS)
    return name if isinstance(name, str) and name else name_of(getattr(item, "topic_id", b""), topics_by_id)


def _key(item: object, names: Sequence[str]) -> object:
    """A plain value is its own key."""
    if not isinstance(item, Message):
        return item
    return next((getattr(item, name) for name in names if hasattr(item, name)), None)


# -- failing some of it ------------------------------------------------------------------------------------------------


class _Splitter(NamedTuple):
    field: str
    code: ErrorCode
    fails: Fails
    topics_by_id: Topics

    def divide(
        self, steps: Sequence[Step], items: Sequence[object], above: Where
    ) -> tuple[list[Message], list[object]] | None:
        """Items of the request: answers to those that fail, and the rest."""
        step, deeper = steps[0], steps[1:]
        failed: list[Message] = []
        rest: list[object] = []
        for item in items:
            where = _where(step, item, above, self.topics_by_id)
            if not deeper:
                if self.fails(where):
                    failed.append(_failed(step.item, self.code, self.field, item))
                else:
                    rest.append(item)
                continue
            below = getattr(item, deeper[0].asked)
            divided = None if below is None else self.divide(deeper, below, where)
            if divided is None:
                return None
            if divided[0]:
                answer = _same(step.item, item)
                setattr(answer, deeper[0].answered, divided[0])
                failed.append(answer)
            if divided[1] or not below:
                assert isinstance(item, Message)
                rest.append(_with(item, deeper[0].asked, divided[1]))
        return failed, rest


def _merged(
    steps: Sequence[Step], asked: Sequence[object], answers: Sequence[Message], failed: Sequence[Message]
) -> list[Message]:
    step, deeper = steps[0], steps[1:]
    merged = {_identity(answer): answer for answer in answers}
    by_identity = {_identity(_same(step.item, item)): item for item in asked}
    for item in failed:
        identity = _identity(item)
        there = merged.get(identity)
        if there is None or not deeper:
            merged[identity] = item
            continue
        name = deeper[0].answered
        below = _merged(
            deeper, getattr(by_identity[identity], deeper[0].asked), getattr(there, name), getattr(item, name)
        )
        setattr(there, name, below)
    order = {identity: number for number, identity in enumerate(by_identity)}
    return sorted(merged.values(), key=lambda answer: order.get(_identity(answer), len(order)))


def _overwrite(
    steps: Sequence[Step],
    field: str,
    answer: Message,
    code: ErrorCode,
    fails: Fails,
    topics_by_id: Topics,
    above: Where,
) -> int:
    step, deeper = steps[0], steps[1:]
    items: list[Message] = getattr(answer, step.answered)
    count = 0
    for number, item in enumerate(items):
        where = _where(step, item, above, topics_by_id)
        if deeper:
            count += _overwrite(deeper, field, item, code, fails, topics_by_id, where)
        elif fails(where):
            items[number] = _failed(step.item, code, field, item)
            count += 1
    return count


def _failed(cls: type[Message], code: ErrorCode, field: str, like: object = None) -> Message:
    """Part of an answer, or all of it, that says nothing but which one it is, and the error."""
    answer = cls() if like is None else _same(cls, like)
    for name, value in _FAILED.items():
        if hasattr(answer, name):
            setattr(answer, name, value)
    setattr(answer, field, code)
    if hasattr(answer, _MESSAGE):
        setattr(answer, _MESSAGE, code.message if cls.__name__ in _TELLS_MESSAGE else None)
    return answer


def _same(cls: type[Message], like: object) -> Message:
    """Part of an answer that says which one it is, as `like` does: part of the request or of another answer."""
    answer = cls()
    if isinstance(like, Message):
        _copy(like, answer, _IDENTITY)
    else:
        setattr(answer, next(name for name in _KEYS if hasattr(answer, name)), like)
    return answer


def _copy(source: Message, target: Message, names: Sequence[str]) -> None:
    for name in names:
        if hasattr(target, name):
            given = name if hasattr(source, name) else _ASKED_AS.get(name, name)
            if hasattr(source, given):
                setattr(target, name, getattr(source, given))


def _identity(item: Message) -> tuple[object, ...]:
    return tuple(repr(getattr(item, name)) for name in _IDENTITY if hasattr(item, name))


def _with(message: Message, name: str, value: object) -> Message:
    changed = copy(message)
    setattr(changed, name, value)
    return changed
