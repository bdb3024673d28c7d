"""Decoding of files and requests into typed values, with errors of one line: the path and the accepted values.

The description in a type's `Meta` states the accepted values if its `extra` is `ACCEPTED`, else the purpose.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec
from msgspec import inspect

from .error_text import expected, one_of, unknown

T = TypeVar("T")

ACCEPTED = {"description": "accepted"}

_TYPE_NAMES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
_LOCATION = re.compile(r" - at `(?:key in )?\$(.*)`$")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`")
_MISSING = re.compile(r"Object missing required field `(.*)`")
_EXPECTED = re.compile(r"Expected `([^`]*)`(.*?)(?:, got `(.*)`)?")
_INVALID = re.compile(r"Invalid (?:enum )?value (.*)")


class DecodeError(ValueError):
    """A value is not accepted; the text begins with its path, if any."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.path = path
        self.problem = problem


def read(given: object, wanted: type[T]) -> T:
    try:
        return msgspec.convert(given, wanted)
    except msgspec.ValidationError as error:
        raise _decode_error(given, wanted, str(error)) from None


def read_texts(given: Mapping[str, str | list[str]], wanted: type[T]) -> T:
    """Decode texts, as in a query: `5` is a number, `true` a bool."""
    try:
        return msgspec.convert(given, wanted, strict=False)
    except msgspec.ValidationError as error:
        raise _decode_error(given, wanted, str(error)) from None


def _decode_error(given: object, wanted: type[T], text: str) -> DecodeError:
    where = _LOCATION.search(text)
    steps = [name or index for name, index in _STEP.findall(where[1])] if where else []
    reason = text[: where.start()] if where else text
    location = _Location("", given, (inspect.type_info(wanted),))
    for step in steps:
        location = location.inner(step)
    return DecodeError(*location.error(reason))


_PLAIN: dict[type, tuple[type, ...]] = {
    inspect.StrType: (str,),
    inspect.IntType: (int,),
    inspect.FloatType: (int, float),
    inspect.BoolType: (bool,),
    inspect.NoneType: (type(None),),
}


class _Location:
    def __init__(self, path: str, given: object, types: Sequence[inspect.Type]) -> None:
        self._path = path
        self._given = given
        self._types = list(_plain(types))
        self._descriptions = [description for one in types if (description := _description(one))]

    def inner(self, step: str) -> "_Location":
        """Descend to a field or an index; `...` is some value of a table."""
        given = self._given
        if isinstance(given, Mapping):
            name = self._wrong_key() if step == "..." else step
            return _Location(_joined(self._path, name), given.get(name), list(self._inner_types(name)))
        index = int(step)
        value = given[index] if isinstance(given, Sequence) else None
        return _Location(f"{self._path}[{index}]", value, list(self._inner_types("")))

    def _wrong_key(self) -> str:
        """Return the first key with a value of a wrong type."""
        assert isinstance(self._given, Mapping)
        plain = tuple({kind for one in _plain(list(self._inner_types(""))) for kind in _PLAIN.get(type(one), ())})
        return next((str(key) for key, value in self._given.items() if type(value) not in plain), "...")

    def _inner_types(self, name: str) -> Iterator[inspect.Type]:
        for one in self._types:
            match one:
                case inspect.StructType() if one.tag_field == name:
                    yield inspect.LiteralType((one.tag,))
                case inspect.StructType() if self._may_be(one):
                    yield from (field.type for field in one.fields if field.encode_name == name)
                case inspect.DictType():
                    yield one.value_type
                case inspect.ListType() | inspect.VarTupleType():
                    yield one.item_type
                case inspect.TupleType():
                    yield from one.item_types

    def _may_be(self, struct: inspect.StructType) -> bool:
        given = self._given
        tag = given.get(struct.tag_field) if isinstance(given, Mapping) and struct.tag_field else None
        return tag is None or tag == struct.tag

    def error(self, reason: str) -> tuple[str, str]:
        if found := _UNKNOWN.fullmatch(reason):
            problem = unknown("field", found[1], self._fields())
            return _joined(self._path, found[1]), self._moved(found[1]) or problem
        if found := _MISSING.fullmatch(reason):
            name = found[1]
            tags = [str(one.tag) for one in self._structs() if one.tag_field == name]
            return _joined(self._path, name), f"missing{_choice(tags)}"
        if found := _INVALID.fullmatch(reason):
            return self._path, one_of(self._choices(), str(self._given))
        if found := _EXPECTED.fullmatch(reason):
            accepted = " or ".join(self._descriptions or [_accepted(found[1], found[2])])
            got = self._got(found[3])
            return self._path, expected(accepted, got) if got else f"expected {accepted}"
        return self._path, reason

    def _moved(self, name: str) -> str:
        """Return the error for a field given beside its tagged struct, or nothing."""
        assert isinstance(self._given, Mapping)
        for outer in self._structs():
            for field in outer.fields:
                holders = [one for one in _plain([field.type]) if isinstance(one, inspect.StructType) and one.tag_field]
                able = [one for one in holders if any(each.encode_name == name for each in one.fields)]
                if able:
                    tag = self._given.get(field.encode_name)
                    best = next((one for one in able if one.tag == tag), able[0])
                    example = f'{field.encode_name} = {{{best.tag_field} = "{best.tag}", {name} = ...}}'
                    return f"misplaced field; expected it in {field.encode_name}, as in {example}"
        return ""

    def _got(self, kind: str | None) -> str:
        """Return the value if it is text or of the right kind, else its kind, if known."""
        if isinstance(self._given, str) or (kind is None and isinstance(self._given, int | float)):
            return repr(self._given)  # quotation marks distinguish '3' from 3
        return "" if kind is None else _TYPE_NAMES.get(kind, kind)

    def _structs(self) -> list[inspect.StructType]:
        return [one for one in self._types if isinstance(one, inspect.StructType)]

    def _fields(self) -> list[str]:
        names = [field.encode_name for one in self._structs() if self._may_be(one) for field in one.fields]
        tags = [one.tag_field for one in self._structs() if one.tag_field]
        return list(dict.fromkeys([*tags, *names]))

    def _choices(self) -> list[str]:
        names: list[str] = []
        for one in self._types:
            if isinstance(one, inspect.LiteralType):
                names += [str(value) for value in one.values]
        return names


def _plain(types: Sequence[inspect.Type]) -> Iterator[inspect.Type]:
    for one in types:
        match one:
            case inspect.Metadata():
                yield from _plain([one.type])
            case inspect.UnionType():
                yield from _plain(one.types)
            case _:
                yield one


def _description(one: inspect.Type) -> str:
    if not isinstance(one, inspect.Metadata) or one.extra != ACCEPTED:
        return ""
    return str((one.extra_json_schema or {})["description"])


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _choice(names: Sequence[str]) -> str:
    return f"; expected one of {', '.join(names)}" if names else ""


def _accepted(types: str, bound: str) -> str:
    """Describe accepted values, from msgspec's names of types."""
    names = [_TYPE_NAMES.get(name, name) for name in types.split(" | ")]
    return " or ".join(names) + bound
