"""Generator of decoder source: straight-line Python for one message class and version.

A single unpack reads consecutive fixed-size fields, the string before them and the length of the next variable part.
"""

from functools import cache, partial
from struct import Struct, calcsize

from sluice.protocol.message import Field, Message, fields_of

from . import wire
from .pausing import ELEMENTS_PER_PAUSE, PausingList
from .source import (
    EXCESS,
    NULL,
    REPEATABLE,
    Source,
    count_code,
    default_literal,
    format_name,
    length_code,
    plain_fields,
    signed,
    smallest,
    snake_case,
    tagged_fields,
)


def decode_source(kind: str, cls: type[Message], version: int, flexible: bool) -> Source:
    """Generate a decoder: `decode` of a whole buffer, `decode_prefix`, or `decode_sliced` with pauses."""
    source = Source()
    source.use("read_varint", wire.read_varint)
    source.use("UNREADABLE", wire.UNREADABLE)
    source.use("unreadable", wire.unreadable)
    source.use("wrong_end", wire.wrong_end)
    tagged: list[tuple[str, Field]] = []
    sliced = kind == "decode_sliced"
    source.begin_function(f"def {kind}(buf, pos, end{', slices' * sliced}):")
    source.line("start = pos")
    if sliced:
        source.line("pause = slices.pause")
    source.line("try:")
    source.indent()
    _Reader(source, version, flexible, tagged, sliced=sliced).struct(cls, "message")
    source.line(f"if pos {'!=' if kind == 'decode' else '>'} end:")
    source.line("    raise wrong_end(pos - end)")
    source.line(f"return message{'' if kind == 'decode' else ', pos'}")
    source.dedent()
    source.line("except UNREADABLE as error:")
    source.line(f'    raise unreadable("{cls.__name__} v{version}", error, pos - start, end - start) from None')
    source.dedent()
    _tagged_readers(source, version, flexible, tagged)
    return source


def _tagged_readers(source: Source, version: int, flexible: bool, tagged: list[tuple[str, Field]]) -> None:
    # Tagged fields may contain structs with tagged fields, so the list grows during the loop.
    tables: dict[str, list[str]] = {}
    for table, field in tagged:
        function = source.global_name(f"read_{field.name}")
        source.begin_function(f"def {function}(buf, pos, end):")
        reader = _Reader(source, version, flexible, tagged)
        variable = source.name(field.name)
        reader.field(field, variable)
        reader.flush()
        source.line(f"return {variable}, pos")
        source.dedent()
        tables.setdefault(table, []).append(f'    {field.tag}: ("{field.name}", {function}),')
    for table, entries in tables.items():
        source.lines += ["", "", f"{table} = {{", *entries, "}"]


class _Reader:
    """Emits the reads of one function. Pending fields are not read yet, and start at `pos`."""

    def __init__(
        self, source: Source, version: int, flexible: bool, tagged: list[tuple[str, Field]], *, sliced: bool = False
    ) -> None:
        self._source = source
        self._version = version
        self._flexible = flexible
        self._tagged = tagged  # (name of the table, field), of all functions of this source
        self._sliced = sliced
        self._format = ""
        self._targets: list[str] = []
        self._string = ""  # the variable of a pending string before them
        self._length = ("", 0)  # of that string: variable, and a number to add

    def struct(self, cls: type[Message], variable: str) -> None:
        values: dict[str, str] = {}
        for field in plain_fields(cls, self._version):
            values[field.name] = self._source.name(field.name)
            self.field(field, values[field.name])
        tags = self._source.name("tags") if self._flexible else ""
        if self._flexible:
            self._fixed("B", tags)
        self.flush()
        self._source.bracketed_line(f"{variable} = {self._constructor(cls, values)}")
        if self._flexible:
            table = self._tag_table(cls)
            read_tagged = self._source.use("read_tagged", wire.read_tagged)
            skips = ", keeps_unknown=False" * self._sliced
            self._source.line(f"if {tags}:")
            self._source.line(f"    pos = {read_tagged}({variable}, buf, pos, end, {tags}, {table}{skips})")

    def field(self, field: Field, variable: str) -> None:
        nullable = self._version in field.null
        if field.is_array:
            self._array(field, variable, nullable)
        elif field.struct is not None:
            if nullable:
                self._nullable_struct(field, field.struct, variable)
            else:
                self.struct(field.struct, variable)
        else:
            self._primitive(field, variable, nullable)

    def flush(self) -> None:
        code, targets, string = self._format, self._targets, self._string
        self._format, self._targets, self._string = "", [], ""
        line = self._source.line
        if string:
            length, added = self._length
            readers = self._source.use(f"string_{format_name(code)}" if code else "string", string_readers(code))
            read = f"{readers}[{signed(length, added)}](buf, pos)"
            self._source.bracketed_line(f"{tuple_of([string, *targets])} = {read}" if code else f"{string} = {read}[0]")
            line(f"{string} = {string}.decode()")
            line(f"pos += {signed(length, added + calcsize('>' + code))}")
        elif code == "B":
            line(f"{targets[0]} = buf[pos]")
            line("pos += 1")
        elif code:
            read = self._source.use(f"read_{format_name(code)}", unpacker(code))
            self._source.bracketed_line(f"{tuple_of(targets)} = {read}(buf, pos)")
            line(f"pos += {calcsize('>' + code)}")

    def _fixed(self, code: str, variable: str) -> None:
        self._format += code
        self._targets.append(variable)

    def _constructor(self, cls: type[Message], values: dict[str, str]) -> str:
        # Positional arguments are twice as fast as keywords.
        arguments: list[str] = []
        given = 0
        for field in fields_of(cls):
            arguments.append(values.get(field.name) or default_literal(field, self._source))
            if field.name in values:
                given = len(arguments)
        return f"{self._source.use(cls.__name__, cls)}({', '.join(arguments[:given])})"

    def _tag_table(self, cls: type[Message]) -> str:
        fields = tagged_fields(cls, self._version)
        if not fields:
            return self._source.use("NO_TAGS", _NO_TAGS)
        table = self._source.global_name(f"{snake_case(cls.__name__).upper()}_TAGS")
        self._tagged += [(table, field) for field in fields]
        return table

    def _nullable_struct(self, field: Field, cls: type[Message], variable: str) -> None:
        present = self._source.name(f"{variable}_present")
        self._fixed("b", present)
        self.flush()
        self._source.line(f"{variable} = None")
        # Kafka writes 1 before a struct; for null -1, or 0 if it is tagged.
        self._source.line(f"if {present} {'>=' if field.tag is None else '>'} 0:")
        self._source.indent()
        self.struct(cls, variable)
        self._source.dedent()

    def _primitive(self, field: Field, variable: str, nullable: bool) -> None:
        assert field.type is not None
        if field.type.code is not None:
            self._fixed(field.type.code, variable)
            return
        read = self._string_content if field.type.name == "string" else self._bytes_content
        code = length_code(field, self._flexible)
        length = self._read_length(code, variable)
        if not nullable:
            read(field, variable, length, code)
            return
        self._source.line(f"if {length} == {NULL[code]}:")
        self._source.line(f"    {variable} = None")
        self._source.line("else:")
        self._source.indent()
        read(field, variable, length, code)
        self.flush()
        self._source.dedent()

    def _read_length(self, code: str, variable: str) -> str:
        length = self._source.name(f"{variable}_n")
        self._fixed(code, length)
        self.flush()
        if code == "B":
            self._source.line(f"if {length} > 127:")
            self._source.line(f"    {length}, pos = read_varint(buf, pos, {length})")
        return length

    def _string_content(self, field: Field, variable: str, length: str, code: str) -> None:
        self._string, self._length = variable, (length, -EXCESS[code])

    def _bytes_content(self, field: Field, variable: str, length: str, code: str) -> None:
        size = signed(length, -EXCESS[code])
        stop = self._source.name(f"{variable}_end")
        wrong = self._source.use("wrong_size", wire.wrong_size)
        self._source.line(f"{stop} = pos + {size}")
        self._source.line(f"if not pos <= {stop} <= end:")
        self._source.line(f'    raise {wrong}("{field.name}", {size}, end - pos)')
        assert field.type is not None
        content = f"buf[pos:{stop}]"
        if field.type.name != "records":
            content = (
                f"{self._source.use('copied', wire.copied)}({content}, pause)" if self._sliced else f"bytes({content})"
            )
        self._source.line(f"{variable} = {content}")
        self._source.line(f"pos = {stop}")

    def _array(self, field: Field, variable: str, nullable: bool) -> None:
        code = count_code(self._flexible)
        count = self._read_length(code, variable)
        if nullable:
            self._source.line(f"if {count} == {NULL[code]}:")
            self._source.line(f"    {variable} = None")
            self._source.line("else:")
            self._source.indent()
        self._elements(field, variable, count, EXCESS[code])
        if nullable:
            self._source.dedent()

    def _elements(self, field: Field, variable: str, count: str, excess: int) -> None:
        # `count` is the number of elements plus `excess`. An element's least size limits valid counts.
        least = smallest(field, self._version, self._flexible)
        assert least > 0, f"{field.name}: elements without bytes cannot limit the count"
        product = count if least == 1 else f"{count} * {least}"
        wrong = self._source.use("wrong_count", wire.wrong_count)
        fits = f"{'0 <' if excess else '0 <='} {product} <= {signed('end - pos', excess * least)}"
        fits = f"({fits} and {count} <= {wire.MAX_ELEMENTS + excess})"
        # Most arrays have one element, and if it is missing, its own reads fail.
        self._source.line(f"if {count} != {1 + excess} and not {fits}:")
        self._source.line(f'    raise {wrong}("{field.name}", {signed(count, -excess)}, end - pos)')
        if field.type is not None and field.type.code in REPEATABLE:
            readers = self._source.use(f"array_{format_name(field.type.code)}", wire.array_unpackers(field.type.code))
            number = signed(count, -excess)
            self._source.line(f"{variable} = {self._numbers(readers, number, field.type.size)}")
            self._source.line(f"pos += {f'({number})' if excess else number} * {field.type.size}")
            return
        element = self._source.name(snake_case(field.struct.__name__) if field.struct else f"{field.name}_each")
        self._source.line(f"{variable} = {self._list(count, excess)}")
        self._source.line(f"while {count} > {excess}:")
        self._source.indent()
        self._source.line(f"{count} -= 1")
        if self._sliced:
            self._source.line(f"if not {count} & {_ELEMENTS_PER_PAUSE - 1}:")
            self._source.line("    pause()")
        if field.struct is not None:
            self.struct(field.struct, element)
        else:
            self._primitive(field, element, nullable=False)
        self.flush()
        self._source.line(f"{variable}.append({element})")
        self._source.dedent()

    def _numbers(self, readers: str, number: str, size: int) -> str:
        plain = f"list({readers}[{number}](buf, pos))"
        if not self._sliced:
            return plain
        read = self._source.use("read_numbers", wire.read_numbers)
        return f"{read}({readers}, {size}, buf, pos, {number}, slices) if {number} > {ELEMENTS_PER_PAUSE} else {plain}"

    def _list(self, count: str, excess: int) -> str:
        if not self._sliced:
            return "[]"
        pausing_list = self._source.use(PausingList.__name__, PausingList)
        return f"{pausing_list}((), slices) if {count} > {ELEMENTS_PER_PAUSE + excess} else []"


_ELEMENTS_PER_PAUSE = 256  # structs of a few fields: 0.2 ms
_NO_TAGS: dict[int, tuple[str, wire.TaggedReader]] = {}


def tuple_of(variables: list[str]) -> str:
    return f"({', '.join(variables)}{',' * (len(variables) == 1)})"


@cache
def unpacker(code: str) -> wire.Unpack:
    return Struct(">" + code).unpack_from


@cache
def string_readers(code: str) -> wire.Cached[wire.Unpack]:
    return wire.Cached(partial(wire.string_unpacker, code))
