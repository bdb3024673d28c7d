"""The base class of all messages and their structs, and the fields from which the codec is generated.

Follows Kafka's message definitions (KIP-482 for tagged fields); one class has all versions of a message. An absent
tagged struct is None, where Kafka has a struct of defaults.
"""

import sys
from types import GenericAlias, UnionType
from typing import ClassVar

import msgspec

from .types import WIRE_TYPES, Range, Single, Type, V, range_of

ALL_VERSIONS = V()


class Message(msgspec.Struct, gc=False, kw_only=True):
    """A request, response or header, or a struct in one.

    Fields that a version lacks are not encoded, and decode to their defaults. Modules of messages start with
    `from __future__ import annotations`. gc=False: messages have no cycles, and there may be a million.
    """

    SINGLE: ClassVar[Single | None] = None

    # Tag -> content of unknown tags; only in flexible versions.
    unknown_tagged_fields: dict[int, bytes] | None = None


class Field:
    __slots__ = ("compact", "default", "is_array", "meaning", "name", "null", "struct", "tag", "type", "versions")

    def __init__(self, name: str, declared: object, default: object) -> None:
        declared, meaning = declared if type(declared) is tuple else (declared, ALL_VERSIONS)
        if isinstance(declared, UnionType):
            declared = declared.__args__[0]
        self.name = name
        self.default = default
        self.meaning: V = meaning
        self.versions: Range = range_of(meaning.versions)
        self.null: Range = range_of(meaning.null)
        self.tag: int | None = meaning.tag
        self.compact: bool = meaning.compact
        self.is_array = isinstance(declared, GenericAlias)
        item = declared.__args__[0] if isinstance(declared, GenericAlias) else declared
        self.struct: type[Message] | None = item if isinstance(item, type) and issubclass(item, Message) else None
        self.type: Type | None = item if isinstance(item, Type) else None
        assert self.struct or self.type, f"{name}: expected a wire type, got {declared}"

    def is_default(self, value: object) -> bool:
        return value is None or value == self.tagged_default()

    def tagged_default(self) -> object:
        return self.struct() if self.struct is not None and not self.is_array else self.default


_fields: dict[type[Message], tuple[Field, ...]] = {}


def fields_of(cls: type[Message]) -> tuple[Field, ...]:
    fields = _fields.get(cls)
    if fields is None:
        defaults = cls()
        names = [name for name in cls.__struct_fields__ if name != "unknown_tagged_fields"]
        declared = _declarations(cls, names)
        fields = tuple(Field(name, declared[name], getattr(defaults, name)) for name in names)
        _fields[cls] = fields
    return fields


class _Annotated:
    """Annotated within `_declarations`: the pair of its arguments."""

    def __class_getitem__(cls, pair: tuple[object, V]) -> tuple[object, V]:
        return pair


_NAMES = {"Annotated": _Annotated, **WIRE_TYPES}


def _declarations(cls: type[Message], names: list[str]) -> dict[str, object]:
    # Annotations stay text until here, which makes imports cheap. They are evaluated together, because compiling them
    # one by one takes longer; the objects of `typing` would take longer than all else.
    together = "[" + ", ".join(cls.__annotations__[name] for name in names) + "]"
    declared = eval(together, vars(sys.modules[cls.__module__]), _NAMES)  # noqa: S307  # our own declarations
    return dict(zip(names, declared, strict=True))
