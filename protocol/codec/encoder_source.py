"""Generator of encoder source: straight-line Python for one message class and version.

One call packs consecutive fixed-size fields. Small parts are joined; bytes and records are appended by reference.
"""

from functools import cache
from struct import Struct

from sluice.protocol.message import Field, Message

from . import wire
from .source import (
    EXCESS,
    NULL,
    REPEATABLE,
    Source,
    condition,
    count_code,
    format_name,
    length_code,
    plain_fields,
    signed,
    snake_case,
    tagged_fields,
)


def encode_source(kind: str, cls: type[Message], version: int, flexible: bool) -> Source:
    """Generate an encoder: `encode`, or `encode_sliced` with pauses."""
    sliced = kind == "encode_sliced"
    source = Source()
    source.use("varints", wire.varints)
    tagged: list[tuple[str, Field]] = []
    source.begin_function(f"def {kind}(message, parts{', drain' * sliced}):")
    source.line("append = parts.append")
    writer = _Writer(source, version, flexible, tagged, sliced=sliced)
    writer.struct(cls, "message")
    writer.flush()
    if len(source.lines) == 2:
        source.lines[1:] = ["    pass"]
    source.dedent()
    _tagged_writers(source, version, flexible, tagged)
    return source


def _tagged_writers(source: Source, version: int, flexible: bool, tagged: list[tuple[str, Field]]) -> None:
    # Tagged fields may contain structs with tagged fields, so the list grows during the loop.
    tables: dict[str, list[str]] = {}
    for table, field in tagged:
        function = source.global_name(f"write_{field.name}")
        source.begin_function(f"def {function}(value, parts):")
        source.line("append = parts.append")
        writer = _Writer(source, version, flexible, tagged)
        writer.field(field, "value")
        writer.flush()
        source.dedent()
        name = source.use(source.global_name(f"{field.name}_default".upper()), field.tagged_default())
        tables.setdefault(table, []).append(f'    ({field.tag}, "{field.name}", {name}, {function}),')
    for table, entries in tables.items():
        source.lines += ["", "", f"{table} = (", *entries, ")"]


class _Writer:
    """Emits the writes of one function. `flush` appends pending fields and pieces."""

    def __init__(
        self, source: Source, version: int, flexible: bool, tagged: list[tuple[str, Field]], *, sliced: bool = False
    ) -> None:
        self._source = source
        self._version = version
        self._flexible = flexible
        self._tagged = tagged  # (name of the table, field), of all functions of this source
        self._sliced = sliced
        self._format = ""
        self._values: list[str] = []
        self._pieces: list[str] = []

    def struct(self, cls: type[Message], variable: str) -> None:
        for field in plain_fields(cls, self._version):
            self.field(field, f"{variable}.{field.name}")
        if self._flexible:
            self._tags(cls, variable)

    def field(self, field: Field, value: str) -> None:
        nullable = self._version in field.null
        if field.is_array:
            self._array(field, value, nullable)
        elif field.struct is not None:
            self._inner_struct(field.struct, self._local(field, value), nullable)
        else:
            self._primitive(field, value, nullable)

    def flush(self) -> None:
        self._end_run()
        pieces, self._pieces = self._pieces, []
        if pieces:
            self._source.bracketed_line(f"append({' + '.join(pieces)})")

    def _end_run(self) -> None:
        code, values = self._format, self._values
        self._format, self._values = "", []
        if code:
            self._pieces.append(_zero(code, values) or self._pack(code, values))

    def _pack(self, code: str, values: list[str]) -> str:
        pack = self._source.use(f"pack_{format_name(code)}", packer(code))
        return f"{pack}({', '.join(values)})"

    def _fixed(self, code: str, value: str) -> None:
        self._format += code
        self._values.append(value)

    def _length(self, code: str, value: str) -> None:
        if code == "B":
            self._end_run()
            self._pieces.append(f"varints[{value}]")
        else:
            self._fixed(code, value)

    def _local(self, field: Field, value: str) -> str:
        if value.isidentifier():
            return value
        variable = self._source.name(field.name)
        self._source.line(f"{variable} = {value}")
        return variable

    def _tags(self, cls: type[Message], variable: str) -> None:
        fields = tagged_fields(cls, self._version)
        conditions = [f"{variable}.unknown_tagged_fields is None"]
        conditions += [is_default(field, f"{variable}.{field.name}") for field in fields]
        table = "()"
        if fields:
            table = self._source.global_name(f"{snake_case(cls.__name__).upper()}_TAGS")
            self._tagged += [(table, field) for field in fields]
        pending = self._format, self._values.copy(), self._pieces.copy()
        self._source.bracketed_line(condition(conditions))
        self._source.indent()
        self._fixed("B", "0")
        self.flush()
        self._source.dedent()
        self._source.line("else:")
        self._source.indent()
        self._format, self._values, self._pieces = pending
        self.flush()
        write_tagged = self._source.use("write_tagged", wire.write_tagged)
        self._source.line(f"{write_tagged}({variable}, parts, {table})")
        self._source.dedent()

    def _inner_struct(self, cls: type[Message], variable: str, nullable: bool) -> None:
        if not nullable:
            self.struct(cls, variable)
            return
        self.flush()
        self._source.line(f"if {variable} is None:")
        self._source.line('    append(b"\\xff")')
        self._source.line("else:")
        self._source.indent()
        self._fixed("b", "1")
        self.struct(cls, variable)
        self.flush()
        self._source.dedent()

    def _primitive(self, field: Field, value: str, nullable: bool) -> None:
        assert field.type is not None
        if field.type.code is not None:
            self._fixed(field.type.code, value)
        elif field.type.name == "records":
            self._records(field, value)
        elif nullable:
            self._nullable_content(field, value)
        else:
            content = self._source.name(field.name)
            self._source.line(f"{content} = {_encoded(field, value)}")
            code = length_code(field, self._flexible)
            self._length(code, signed(f"len({content})", EXCESS[code]))
            self._content(field, content)

    def _nullable_content(self, field: Field, value: str) -> None:
        code = length_code(field, self._flexible)
        content = self._source.name(field.name)
        length = self._source.name(f"{field.name}_n")
        line = self._source.line
        line(f"{content} = {value}")
        line(f"if {content} is None:")
        line(f'    {content}, {length} = b"", {NULL[code]}')
        line("else:")
        if _encoded(field, content) != content:
            line(f"    {content} = {_encoded(field, content)}")
        line(f"    {length} = {signed(f'len({content})', EXCESS[code])}")
        self._length(code, length)
        self._content(field, content)

    def _content(self, field: Field, content: str) -> None:
        self._end_run()
        if field.type is not None and field.type.name == "bytes":  # by reference: 100 MB take 0.1 s to copy
            self.flush()
            self._source.line(f"append({content})")
        else:
            self._pieces.append(content)

    def _records(self, field: Field, value: str) -> None:
        # By reference: a fetch of 1 MiB is not copied. Null is allowed in any version: Kafka also writes null if there
        # are no records.
        code = length_code(field, self._flexible)
        records = self._local(field, value)
        size = self._source.name(f"{field.name}_n")
        segmented = self._source.use("SEGMENTED", SEGMENTED)
        line = self._source.line
        line(f"if {records} is None:")
        line(f"    {size} = {NULL[code]}")
        line(f"elif type({records}) in {segmented}:")
        line(f"    {size} = {signed(f'sum(map(len, {records}))', EXCESS[code])}")
        line("else:")
        line(f"    {size} = {signed(f'len({records})', EXCESS[code])}")
        self._length(code, size)
        self.flush()
        line(f"if type({records}) in {segmented}:")
        line(f"    parts.extend({records})")
        line(f"elif {records}:")
        line(f"    append({records})")

    def _array(self, field: Field, value: str, nullable: bool) -> None:
        code = count_code(self._flexible)
        elements = self._local(field, value)
        length = signed(f"len({elements})", EXCESS[code])
        self._length(code, f"{NULL[code]} if {elements} is None else {length}" if nullable else length)
        each = f"{elements} or ()" if nullable else elements
        if field.type is not None and field.type.code in REPEATABLE:
            arrays = self._source.use(f"array_{format_name(field.type.code)}", wire.array_packers(field.type.code))
            count = f"len({each})"
            self._content(field, f"{arrays}[{count}](*{f'({each})' if nullable else each})")
            return
        self.flush()
        element = self._source.name(snake_case(field.struct.__name__) if field.struct else f"{field.name}_each")
        self._source.line(f"for {element} in {each}:")
        self._source.indent()
        if field.struct is not None:
            self.struct(field.struct, element)
        else:
            self._primitive(field, element, nullable=False)
        self.flush()
        if self._sliced:
            self._source.line(f"if len(parts) > {_PARTS_PER_DRAIN}:")
            self._source.line("    drain()")
        self._source.dedent()


def _encoded(field: Field, value: str) -> str:
    is_string = field.type is not None and field.type.name == "string"
    return f"{value}.encode()" if is_string else value


def is_default(field: Field, value: str) -> str:
    """Return the condition under which a tagged field is omitted."""
    if field.default is None:
        return f"{value} is None"
    if field.is_array:
        return f"not {value}"
    return f"{value} == {field.default!r}"


def _zero(code: str, values: list[str]) -> str:
    # The end of nearly every struct: no tagged fields.
    return 'b"\\0"' if (code, values) == ("B", ["0"]) else ""


_PARTS_PER_DRAIN = 512  # of a few fields each: 0.3 ms
SEGMENTED = (tuple, list)  # types of records in several pieces


@cache
def packer(code: str) -> wire.Pack:
    return Struct(">" + code).pack
