"""Parsing of a fault rule on the command line, such as `action=error code=NOT_LEADER_OR_FOLLOWER api=Produce times=3`.

Each word is NAME=VALUE for a field of the rule or, for other names, of its action. A word without `=` continues the
previous value, so a schedule may contain spaces: `schedule=3 fail, 2 pass, repeat`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress

from msgspec import inspect

from sluice.broker.faults.actions import KINDS
from sluice.broker.faults.rule import Rule
from sluice.errors import ConfigError
from sluice.text.error_text import expected, one_of, unknown

_ACTION = "action"
_Scalar = str | int | float | bool
_Value = _Scalar | list[_Scalar]
_READERS: dict[type[inspect.Type], Callable[[str], _Scalar]] = {
    inspect.BoolType: {"true": True, "false": False}.__getitem__,
    inspect.IntType: int,
    inspect.FloatType: float,
}


def rule_of(words: Iterable[str]) -> dict[str, object]:
    """Return the rule for the admin port; raise ConfigError for malformed or unknown fields."""
    given = dict(_pairs(words))
    if _ACTION not in given:
        raise ConfigError(f"action: missing; expected action=KIND with one of {', '.join(KINDS)}")
    kind = given.pop(_ACTION)
    of_rule = _fields(Rule)
    if kind not in KINDS:
        raise ConfigError(f"action: {one_of(KINDS, kind)}")
    of_action = _fields(KINDS[kind])
    rule: dict[str, object] = {}
    action: dict[str, object] = {"kind": kind}
    for name, text in given.items():
        if name not in of_rule and name not in of_action:
            names = [*of_action, *of_rule]
            raise ConfigError(f"{name}: {unknown(f'field for action={kind}', name, names)}")
        holder, fields = (rule, of_rule) if name in of_rule else (action, of_action)
        holder[name] = _value(text, fields[name])
    return {_ACTION: action, **rule}


def _pairs(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    parts = [part for word in words for part in word.split()]
    items: list[str] = []
    for part in parts:
        if "=" in part.partition(",")[0] or not items:
            items.append(part)
        else:
            items[-1] += f" {part}"
    seen: set[str] = set()
    for item in items:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise ConfigError(f"rule: {expected('NAME=VALUE, such as action=error', item)}")
        if name in seen:
            raise ConfigError(f"{name}: given twice")
        seen.add(name)
        yield name, value


def _fields(struct: type) -> dict[str, tuple[inspect.Type, ...]]:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: tuple(_plain(field.type)) for field in info.fields}


def _plain(one: inspect.Type) -> Iterator[inspect.Type]:
    match one:
        case inspect.Metadata():
            yield from _plain(one.type)
        case inspect.UnionType():
            for each in one.types:
                yield from _plain(each)
        case _:
            yield one


def _value(text: str, types: Collection[inspect.Type]) -> _Value:
    """Convert a text to the first type of the field that accepts it."""
    lists = [one for one in types if isinstance(one, inspect.ListType)]
    if lists and ("," in text or not any(type(one) is type(lists[0].item_type) for one in types)):
        items = tuple(_plain(lists[0].item_type))
        return [_scalar(item.strip(), items) for item in text.split(",")]
    return _scalar(text, types)


def _scalar(text: str, types: Collection[inspect.Type]) -> _Scalar:
    for kind, read in _READERS.items():
        if any(isinstance(one, kind) for one in types):
            with suppress(ValueError, KeyError):
                return read(text)
    return text
