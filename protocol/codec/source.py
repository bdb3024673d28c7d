"""What both generators of codec source share: lines with indentation, names that do not clash, runs of fixed fields."""

import keyword
import re
from collections.abc import Set
from struct import calcsize

from sluice.protocol.message import Field, Message, fields_of
from sluice.protocol.types import ZERO_UUID

WIDTH = 120  # of a line, as in the rest of the project
BREAKS = re.compile(r"(?<=,) | (?=\+ )| (?=and )")
NULL = {"B": 0, "h": -1, "i": -1}  # a length or count that means null, by its format
EXCESS = {"B": 1, "h": 0, "i": 0}  # what a length or count has beyond the number of bytes or elements
# Names the generated functions use for themselves; a field of such a name gets a number.
RESERVED = frozenset(
    {"append", "buf", "end", "error", "extend", "message", "parts", "pos", "start", "string", "value", "varints"}
)


class Source:
    """Lines of one module of generated source, and the objects it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.objects: dict[str, object] = {}
        self._indent = 0
        self._names: set[str] = set()
        self._global_names: set[str] = set(RESERVED)

    def line(self, text: str) -> None:
        """Adds a line at the current depth."""
        self.lines.append("    " * self._indent + text)

    def bracketed_line(self, text: str) -> None:
        """Adds a line whose every comma, `+` and `and` stands in brackets; it may be broken there."""
        room = WIDTH - 4 * self._indent
        whole = ""
        for piece in BREAKS.split(text):
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
        """Starts a function; the names of its variables are its own."""
        if self.lines:
            self.lines += ["", ""]
        self.line(head)
        self.indent()
        self._names = set()

    def name(self, wanted: str) -> str:
        """A variable's name that no other in this function has: `wanted`, or that with a number."""
        return _free(wanted, self._names, self.objects.keys() | self._global_names)

    def global_name(self, wanted: str) -> str:
        """A name at the top of the module that nothing else has."""
        return _free(wanted, self._global_names, self.objects.keys())

    def use(self, name: str, value: object) -> str:
        """Makes `value` known to the source as `name`, and returns the name."""
        assert self.objects.setdefault(name, value) is value, f"two things called {name}"
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
    """`variable` plus `number`, as a person writes it."""
    if number == 0:
        return variable
    return f"{variable} {'+' if number > 0 else '-'} {abs(number)}"


def condition(checks: list[str]) -> str:
    """An `if` of all `checks`, for `bracketed_line`."""
    return f"if ({' and '.join(checks)}):" if len(checks) > 1 else f"if {checks[0]}:"


def format_name(code: str) -> str:
    """A struct format as part of a name."""
    return code.replace("?", "T")


def snake_case(name: str) -> str:
    """`TopicProduceData` -> `topic_produce_data`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def plain_fields(cls: type[Message], version: int) -> list[Field]:
    """The fields of `cls` that `version` writes one after the other."""
    return [field for field in fields_of(cls) if version in field.versions and field.tag is None]


def tagged_fields(cls: type[Message], version: int) -> list[Field]:
    """The fields of `cls` that `version` writes as tagged fields, by rising tag."""
    found = [field for field in fields_of(cls) if version in field.versions and field.tag is not None]
    return sorted(found, key=lambda field: field.tag or 0)


def default_literal(field: Field, source: Source) -> str:
    """Source text that gives a field's default; every evaluation of a mutable one gives a new object."""
    default = field.default
    if isinstance(default, Message):
        assert field.struct is not None
        return source.use(field.struct.__name__, field.struct) + "()"
    if default == ZERO_UUID:
        return source.use("ZERO_UUID", ZERO_UUID)
    assert default is None or isinstance(default, bool | int | float | str | bytes) or default == [], field.name
    return repr(default)


def smallest(field: Field, version: int, flexible: bool) -> int:
    """The least bytes one value, or one element if it is an array, of `field` can have."""
    if field.struct is not None:
        inner = plain_fields(field.struct, version)
        return sum(least_size(each, version, flexible) for each in inner) + flexible  # and a count of tagged fields
    assert field.type is not None
    if field.type.code is not None:
        return field.type.size
    return calcsize(">" + length_code(field, flexible))


def least_size(field: Field, version: int, flexible: bool) -> int:
    """The least bytes `field` as a whole can have."""
    if field.is_array:
        return calcsize(">" + count_code(flexible))
    if field.struct is not None and version in field.null:
        return 1
    return smallest(field, version, flexible)


def length_code(field: Field, flexible: bool) -> str:
    """The struct format of the length before a string, bytes or records; `B` is the first byte of a varint."""
    if flexible and field.compact:
        return "B"
    assert field.type is not None
    return "h" if field.type.name == "string" else "i"


def count_code(flexible: bool) -> str:
    """The struct format of the number of elements before an array."""
    return "B" if flexible else "i"
