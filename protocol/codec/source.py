"""Helpers of both source generators: indented lines, unique names, field lists and struct formats."""

import keyword
import re
from collections.abc import Set
from struct import calcsize

from sluice.protocol.message import Field, Message, fields_of
from sluice.protocol.types import ZERO_UUID

WIDTH = 120
REPEATABLE = frozenset("?bhHiqd")  # struct formats that may have a repeat count
NULL = {"B": 0, "h": -1, "i": -1}
EXCESS = {"B": 1, "h": 0, "i": 0}  # a length or count on the wire minus the actual number
# Names that generated functions use; a field of such a name gets a number.
RESERVED = frozenset(
    {
        *("append", "buf", "drain", "end", "error", "extend", "message", "parts", "pause", "pos"),
        *("slices", "start", "string", "value", "varints"),
    }
)


class Source:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.objects: dict[str, object] = {}
        self._indent = 0
        self._names: set[str] = set()
        self._global_names: set[str] = set(RESERVED)

    def line(self, text: str) -> None:
        self.lines.append("    " * self._indent + text)

    def bracketed_line(self, text: str) -> None:
        """Append a line whose commas, `+` and `and` are all in brackets, so it may be wrapped there."""
        room = WIDTH - 4 * self._indent
        if len(text) <= room:
            self.line(text)
            return
        whole = ""
        for piece in re.split(r"(?<=,) | (?=\+ )| (?=and )", text):
            if whole and len(whole) + 1 + len(piece) > room:
                self.line(whole)
                whole = "    " + piece
            else:
                whole = f"{whole} {piece}" if whole else piece
        self.line(whole)

    def indent(self) -> None:
        self._indent += 1

    def dedent(self) -> None:
        self._indent -= 1

    def begin_function(self, head: str) -> None:
        if self.lines:
            self.lines += ["", ""]
        self.line(head)
        self.indent()
        self._names = set()

    def name(self, wanted: str) -> str:
        """Return an unused variable name for this function: `wanted`, if needed with a number."""
        return _free(wanted, self._names, self.objects.keys() | self._global_names)

    def global_name(self, wanted: str) -> str:
        return _free(wanted, self._global_names, self.objects.keys())

    def use(self, name: str, value: object) -> str:
        assert self.objects.setdefault(name, value) is value, f"{name} is already another object"
        return name

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def _free(wanted: str, taken: set[str], others: Set[str]) -> str:
    name, number = wanted, 1
    while name in taken or name in others or keyword.iskeyword(name):
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name


def signed(variable: str, number: int) -> str:
    if number == 0:
        return variable
    return f"{variable} {'+' if number > 0 else '-'} {abs(number)}"


def condition(checks: list[str]) -> str:
    return f"if ({' and '.join(checks)}):" if len(checks) > 1 else f"if {checks[0]}:"


def format_name(code: str) -> str:
    return code.replace("?", "T")


def snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def plain_fields(cls: type[Message], version: int) -> list[Field]:
    return [field for field in fields_of(cls) if version in field.versions and field.tag is None]


def tagged_fields(cls: type[Message], version: int) -> list[Field]:
    found = [field for field in fields_of(cls) if version in field.versions and field.tag is not None]
    return sorted(found, key=lambda field: field.tag or 0)


def default_literal(field: Field, source: Source) -> str:
    default = field.default
    if isinstance(default, Message):
        assert field.struct is not None
        return source.use(field.struct.__name__, field.struct) + "()"
    if default == ZERO_UUID:
        return source.use("ZERO_UUID", ZERO_UUID)
    assert default is None or isinstance(default, bool | int | float | str | bytes) or default == [], field.name
    return repr(default)


def smallest(field: Field, version: int, flexible: bool) -> int:
    if field.struct is not None:
        inner = plain_fields(field.struct, version)
        return sum(least_size(each, version, flexible) for each in inner) + flexible  # plus the count of tagged fields
    assert field.type is not None
    if field.type.code is not None:
        return field.type.size
    return calcsize(">" + length_code(field, flexible))


def least_size(field: Field, version: int, flexible: bool) -> int:
    if field.is_array:
        return calcsize(">" + count_code(flexible))
    if field.struct is not None and version in field.null:
        return 1
    return smallest(field, version, flexible)


def length_code(field: Field, flexible: bool) -> str:
    """Return the struct format of the length of a string, bytes or records; `B` is the first byte of a varint."""
    if flexible and field.compact:
        return "B"
    assert field.type is not None
    return "h" if field.type.name == "string" else "i"


def count_code(flexible: bool) -> str:
    return "B" if flexible else "i"
