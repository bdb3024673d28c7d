"""Generator of fast decoders and encoders for messages with one element per array, as `SINGLE` declares.

Nearly every Produce and Fetch request is about one partition of one topic. Then every count is known, the other arrays
are empty, and there are no tagged fields. The bytes of a ProduceRequest v9 are:

    00 acks timeout_ms 02 name_n name 02 index records_n records 00 00 00
    |                  |              |                          +- no tagged fields: of the partition, topic, request
    |                  |              +- 1 partition
    |                  +- 1 topic
    +- no transactional id

`_Shape.items` flattens the fields into such a list, in which adjacent constants are one item. The decoder unpacks the
items up to the next string or records at once, compares the constants, and constructs the message. The encoder packs
the items in one call. For any other shape or malformed data, the function calls the general one.
"""

from collections.abc import Iterator
from struct import Struct, calcsize, pack
from struct import error as struct_error
from typing import NamedTuple

from sluice.protocol.message import Field, Message, fields_of

from . import wire
from .decoder_source import string_readers, tuple_of, unpacker
from .encoder_source import SEGMENTED, is_default, packer
from .source import (
    EXCESS,
    NULL,
    Source,
    condition,
    count_code,
    default_literal,
    format_name,
    length_code,
    plain_fields,
    signed,
    snake_case,
    tagged_fields,
)

# Exceptions of packing another shape, or a value that does not fit.
UNWRITABLE = (AttributeError, TypeError, ValueError, struct_error)


class _Constant(NamedTuple):
    name: str
    code: str  # struct format, as in the following classes
    value: int | bytes


class _Fixed(NamedTuple):
    path: str
    code: str


class _NullOrEmpty(NamedTuple):
    path: str
    code: str


class _String(NamedTuple):
    path: str
    code: str


class _Records(NamedTuple):
    path: str
    code: str


_Item = _Constant | _Fixed | _NullOrEmpty | _String | _Records


def single_source(kind: str, cls: type[Message], version: int, flexible: bool) -> Source:
    """Generate `decode_single`, `decode_prefix_single` or `encode_single`."""
    shape = _Shape(cls, version, flexible)
    if kind == "decode":
        return _decoder_source(kind, shape, "{0} == end", "return {1}")
    if kind == "decode_prefix":
        return _decoder_source(kind, shape, "{0} <= end", "return ({1}, {0})")
    source = Source()
    source.use("UNWRITABLE", UNWRITABLE)
    source.begin_function("def encode_single(message, parts):")
    source.line("try:")
    source.indent()
    _Writer(source, shape).write()
    source.dedent()
    source.line("except UNWRITABLE:")
    source.line("    pass")
    source.line("general(message, parts)")
    return source


def _decoder_source(kind: str, shape: "_Shape", is_end: str, returns: str) -> Source:
    source = Source()
    source.use("UNREADABLE", wire.UNREADABLE)
    source.begin_function(f"def {kind}_single(buf, pos, end):")
    source.line("try:")
    source.indent()
    _Reader(source, shape).read(is_end, returns)
    source.dedent()
    source.line("except UNREADABLE:")
    source.line("    pass")
    source.line("return general(buf, pos, end)")
    return source


class _Shape:
    def __init__(self, cls: type[Message], version: int, flexible: bool) -> None:
        assert cls.SINGLE is not None, f"{cls.__name__} has no SINGLE"
        self.cls = cls
        self.version = version
        self.flexible = flexible
        self.single = cls.SINGLE

    def items(self) -> list[_Item]:
        merged: list[_Item] = []
        for item in self._struct_items(self.cls, ""):
            before = merged[-1] if merged else None
            if isinstance(item, _Constant) and isinstance(before, _Constant):
                content = _content(before) + _content(item)
                merged[-1] = _Constant("constants", f"{len(content)}s", content)
            else:
                merged.append(item)
        return merged

    def _struct_items(self, cls: type[Message], path: str) -> Iterator[_Item]:
        for field in plain_fields(cls, self.version):
            yield from self._field_items(field, path + field.name)
        if self.flexible:
            yield _Constant("tags", "B", 0)

    def _field_items(self, field: Field, path: str) -> Iterator[_Item]:
        name, single = field.name, self.single
        if field.is_array:
            code = count_code(self.flexible)
            if name in single.arrays:
                assert field.struct is not None
                yield _Constant(f"{name}_n", code, 1 + EXCESS[code])
                yield from self._struct_items(field.struct, f"{path}.")
            else:
                assert name in single.empty, f"SINGLE of {self.cls.__name__} lacks the array {path}"
                nullable = self.version in field.null
                yield _NullOrEmpty(path, code) if nullable else _Constant(f"{name}_n", code, EXCESS[code])
            return
        assert field.type is not None, f"a fast codec of {self.cls.__name__} does not support the struct {path}"
        if field.type.code is not None:
            yield _Fixed(path, field.type.code)
            return
        code = length_code(field, self.flexible)
        if name in single.null or name in single.empty:
            assert field.default == (None if name in single.null else ""), f"{path}: SINGLE contradicts the default"
            yield _Constant(f"{name}_n", code, NULL[code] if name in single.null else EXCESS[code])
        elif field.type.name == "string":
            yield _String(path, code)
        else:
            assert field.type.name == "records", (
                f"a fast codec of {self.cls.__name__} does not support the bytes {path}"
            )
            yield _Records(path, code)


def _content(constant: _Constant) -> bytes:
    return constant.value if isinstance(constant.value, bytes) else pack(">" + constant.code, constant.value)


class _Reader:
    """Emits the body of a decoder. Pending items start at `base` plus `offset`."""

    def __init__(self, source: Source, shape: _Shape) -> None:
        self._source = source
        self._shape = shape
        self._values: dict[str, str] = {}
        self._format = ""
        self._targets: list[str] = []
        self._string = ("", "", 0)  # string before them: variable, variable of its length, EXCESS of that
        self._base, self._offset = "pos", 0
        self._checks: list[str] = []
        self._depth = 0

    def read(self, is_end: str, returns: str) -> None:
        for item in self._shape.items():
            match item:
                case _Constant(name, code, value):
                    self._checks.append(f"{self._fixed(code, name)} == {value!r}")
                case _Fixed(path, code):
                    self._values[path] = self._fixed(code, _last(path))
                case _NullOrEmpty(path, code):
                    count = self._fixed(code, f"{_last(path)}_n")
                    self._checks.append(f"{NULL[code]} <= {count} <= {EXCESS[code]}")
                    self._values[path] = f"None if {count} == {NULL[code]} else []"
                case _String(path, code):
                    self._read_string(path, code)
                case _Records(path, code):
                    self._read_records(path, code)
        self._flush()
        stop = self._position()
        if self._offset:
            stop = self._source.name("stop")
            self._source.line(f"{stop} = {self._position()}")
        self._checks.append(is_end.format(stop))
        self._check()
        self._source.bracketed_line(returns.format(stop, self._constructor(self._shape.cls, "")))
        for _ in range(self._depth):
            self._source.dedent()

    def _fixed(self, code: str, wanted: str) -> str:
        variable = self._source.name(wanted)
        self._format += code
        self._targets.append(variable)
        return variable

    def _position(self) -> str:
        return signed(self._base, self._offset)

    def _check(self) -> None:
        checks, self._checks = self._checks, []
        if checks:
            self._source.bracketed_line(condition(checks))
            self._source.indent()
            self._depth += 1

    def _flush(self) -> None:
        code, targets, (string, length, excess) = self._format, self._targets, self._string
        self._format, self._targets, self._string = "", [], ("", "", 0)
        line, position = self._source.line, self._position()
        if string:
            readers = self._source.use(f"string_{format_name(code)}", string_readers(code))
            read = f"{readers}[{signed(length, -excess)}](buf, {position})"
            self._source.bracketed_line(f"{tuple_of([string, *targets])} = {read}")
            after = self._source.name("at")
            line(f"{after} = {signed(f'{self._base} + {length}', self._offset + calcsize('>' + code) - excess)}")
            self._base, self._offset = after, 0
        elif code:
            read = self._source.use(f"read_{format_name(code)}", unpacker(code))
            self._source.bracketed_line(f"{tuple_of(targets)} = {read}(buf, {position})")
            self._offset += calcsize(">" + code)

    def _read_string(self, path: str, code: str) -> None:
        variable = self._source.name(_last(path))
        length = self._fixed(code, f"{_last(path)}_n")
        if code == "B":
            self._checks.append(f"{length} < {wire.CACHED}")  # else the varint has more bytes
        self._flush()
        self._check()
        self._string = variable, length, EXCESS[code]
        self._values[path] = f"{variable}.decode()"

    def _read_records(self, path: str, code: str) -> None:
        line = self._source.line
        length = self._fixed(code, f"{_last(path)}_n")
        self._flush()
        self._check()
        start, stop = (self._source.name(f"{_last(path)}_{edge}") for edge in ("start", "end"))
        line(f"{start} = {self._position()}")
        if code == "B":
            read_varint = self._source.use("read_varint", wire.read_varint)
            line(f"if {length} > 127:")
            line(f"    {length}, {start} = {read_varint}(buf, {start}, {length})")
        line(f"{stop} = {start} + {signed(length, -EXCESS[code])}")
        self._checks.append(f"{start} <= {stop}")  # not null; the last check is for `end`
        self._base, self._offset = stop, 0
        self._values[path] = f"buf[{start}:{stop}]"

    def _constructor(self, cls: type[Message], path: str) -> str:
        # As in the general decoder: positional, without trailing defaults.
        arguments: list[str] = []
        given = 0
        for field in fields_of(cls):
            default = default_literal(field, self._source)
            if field.name in self._shape.single.arrays:
                assert field.struct is not None
                arguments.append(f"[{self._constructor(field.struct, f'{path}{field.name}.')}]")
            else:
                arguments.append(self._values.get(path + field.name, default))
            if arguments[-1] != default:
                given = len(arguments)
        return f"{self._source.use(cls.__name__, cls)}({', '.join(arguments[:given])})"


class _Writer:
    """Emits the body of an encoder: checks of the shape, then one expression per piece."""

    def __init__(self, source: Source, shape: _Shape) -> None:
        self._source = source
        self._shape = shape
        self._variables: dict[str, str] = {}
        self._formats = [""]  # of the pending items; a second one after a string
        self._values: list[str] = []
        self._string = ""
        self._joined: list[str] = []
        self._pieces: list[str] = []
        self._depth = 0

    def write(self) -> None:
        items = self._shape.items()
        self._check(self._open(self._shape.cls, "message", ""))
        self._check([check for item in items if isinstance(item, _String) for check in self._encode(item)])
        for item in items:
            match item:
                case _Constant(_, code, value):
                    self._fixed(code, repr(value))
                case _Fixed(path, code):
                    self._fixed(code, self._value(path))
                case _NullOrEmpty(path, code):
                    self._fixed(code, f"{NULL[code]} if {self._value(path)} is None else {EXCESS[code]}")
                case _String(path, code):
                    self._write_string(self._variables[path], code)
                case _Records(path, code):
                    self._write_records(path, code)
        self._end_piece()
        # One statement for all pieces, so that nothing is appended if one fails.
        if len(self._pieces) == 1:
            self._source.bracketed_line(f"parts.append({self._pieces[0]})")
        else:
            self._source.bracketed_line(f"parts += ({', '.join(self._pieces)})")
        self._source.line("return")
        for _ in range(self._depth):
            self._source.dedent()

    def _open(self, cls: type[Message], variable: str, path: str) -> list[str]:
        shape, single = self._shape, self._shape.single
        self._variables[path] = variable
        checks: list[str] = []
        for field in plain_fields(cls, shape.version):
            value = f"{variable}.{field.name}"
            if field.name in single.arrays:
                assert field.struct is not None
                element = self._source.name(snake_case(field.struct.__name__))
                self._source.line(f"({element},) = {value}")
                checks += self._open(field.struct, element, f"{path}{field.name}.")
            elif field.name in single.null:
                checks.append(f"{value} is None")
            elif field.name in single.empty:
                checks.append(f"not {value}")
        if shape.flexible:
            checks.append(f"{variable}.unknown_tagged_fields is None")
            checks += [is_default(field, f"{variable}.{field.name}") for field in tagged_fields(cls, shape.version)]
        return checks

    def _encode(self, string: _String) -> list[str]:
        variable = self._source.name(_last(string.path))
        self._source.line(f"{variable} = {self._value(string.path)}.encode()")
        self._source.line(f"{variable}_n = len({variable})")
        self._variables[string.path] = variable
        return [f"{variable}_n < {wire.CACHED - 1}"] if string.code == "B" else []

    def _check(self, checks: list[str]) -> None:
        if checks:
            self._source.bracketed_line(condition(checks))
            self._source.indent()
            self._depth += 1

    def _value(self, path: str) -> str:
        name = _last(path)
        return f"{self._variables[path.removesuffix(name)]}.{name}"

    def _fixed(self, code: str, value: str) -> None:
        self._formats[-1] += code
        self._values.append(value)

    def _write_string(self, variable: str, code: str) -> None:
        if self._string:
            self._end_run()
        self._fixed(code, signed(f"{variable}_n", EXCESS[code]))
        self._values.append(variable)
        self._formats.append("")
        self._string = variable

    def _write_records(self, path: str, code: str) -> None:
        line, segmented = self._source.line, self._source.use("SEGMENTED", SEGMENTED)
        records = self._source.name(_last(path))
        line(f"{records} = {self._value(path)}")
        line(f"if type({records}) not in {segmented}:")
        line(f"    {records} = ({records},)")
        # One segment is usual, and cheaper without `sum`.
        size = f"(len({records}[0]) if len({records}) == 1 else sum(map(len, {records})))"
        if code == "B":
            self._end_run()
            self._joined.append(f"{self._source.use('varints', wire.varints)}[{size} + 1]")
        else:
            self._fixed(code, size)
        self._end_piece()
        self._pieces.append(f"*{records}")

    def _end_piece(self) -> None:
        self._end_run()
        joined, self._joined = self._joined, []
        if joined:
            self._pieces.append(" + ".join(joined))

    def _end_run(self) -> None:
        formats, values, string = self._formats, self._values, self._string
        self._formats, self._values, self._string = [""], [], ""
        name = format_name("_".join(formats))
        if string:
            before, after = formats
            made = wire.Cached(lambda length: Struct(f">{before}{length}s{after}").pack)
            packers = self._source.use(f"packers_{name}", made)
            self._joined.append(f"{packers}[{string}_n]({', '.join(values)})")
        elif values and values[0].startswith("b'"):
            self._joined += values
        elif values:
            pack_ = self._source.use(f"pack_{name}", packer(formats[0]))
            self._joined.append(f"{pack_}({', '.join(values)})")


def _last(path: str) -> str:
    return path.rpartition(".")[2]
