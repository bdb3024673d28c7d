"""Vectors of the wire format: messages, whole frames, the registry of APIs, error codes.

A message is checked both ways: its bytes decode to its JSON form and encode to the same bytes, and so does the message
built from its JSON form. Vectors of undeclared APIs are skipped.
"""

from collections.abc import Iterator

from sluice.protocol.apis import API_KEYS, Api
from sluice.protocol.apis.header import RequestHeader, ResponseHeader
from sluice.protocol.codec.compile import decode_prefix, decoder, encoder
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message, fields_of
from tests.support.kafka_json import from_json, json_name, to_json
from tests.vectors import Check, Vector

NEWEST_JAR = "kafka-clients-4.4.0"  # the registry is a union of jars; only the newest has the last versions
RENAMED = {"ListClientMetricsResources": "ListConfigResources"}  # the registry has the newest name of each API
FRAME_TAIL = b"\xff" * 8  # bytes after a frame in a receive buffer, which no decoder may read

Path = list[str | int]


def check_protocol(vector: Vector) -> list[str] | None:
    """Check one message without header and size."""
    cls = message_class(vector)
    if cls is None:
        return None
    version = integer(vector["version"])
    failures = check_message(cls, version, text(vector["hex"]), vector["json"], vector.get("unknown_tagged_fields"))
    if vector["api_key"] is not None:
        expected = vector["header_version"]
        actual = header_version(API_KEYS[integer(vector["api_key"])], text(vector["kind"]), version)
        failures += differences("header_version", actual, expected)
    return failures


def check_frame(vector: Vector) -> list[str] | None:
    """Check size, header and body of one message."""
    cls = message_class(vector)
    if cls is None:
        return None
    header_cls = RequestHeader if vector["kind"] == "request" else ResponseHeader
    version, header_version_ = integer(vector["version"]), integer(vector["header_version"])
    frame = bytes.fromhex(text(vector["frame_hex"]))
    failures = differences("size", int.from_bytes(frame[:4], signed=True), len(frame) - 4)
    header, body = decode_prefix(header_cls, header_version_)(memoryview(frame + FRAME_TAIL), 4, len(frame))
    failures += differences("header", to_json(header, header_version_), vector["header"])
    failures += check_message(cls, version, frame[body:].hex(), vector["json"], vector.get("unknown_tagged_fields"))
    from_form = encoded(from_json(header_cls, header_version_, vector["header"]), header_version_)
    if header.unknown_tagged_fields is None:
        failures += differences("header's bytes from json", from_form.hex(), frame[4:body].hex())
    failures += differences("header's bytes", encoded(header, header_version_).hex(), frame[4:body].hex())
    return failures


def check_api_versions(vector: Vector) -> list[str] | None:
    """Check the versions of one API. The registry has the union of all jars' versions."""
    api = API_KEYS.get(integer(vector["api_key"]))
    if api is None:
        return None
    first, last = integer(vector["min"]), integer(vector["max"])
    versions = range(first, last + 1)
    failures = differences("name", api.name, RENAMED.get(text(vector["name"]), vector["name"]))
    flexible_since = max(api.flexible_since, first) if api.flexible_since <= api.max_version else None
    failures += differences("flexible_since", flexible_since, vector["flexible_since"])
    if not api.min_version <= first <= last <= api.max_version:
        failures.append(f"versions {first} to {last}, but declared are {api.min_version} to {api.max_version}")
    if vector["jar"] == NEWEST_JAR:
        failures += differences("max", api.max_version, last)
        failures += differences("latest_version_unstable", api.latest_unstable, vector["latest_version_unstable"])
        failures += differences("highest_stable", api.max_version - api.latest_unstable, vector["highest_stable"])
    request_versions = [api.request_header_version(version) for version in versions]
    response_versions = [api.response_header_version(version) for version in versions]
    failures += differences("request_header_versions", request_versions, vector["request_header_versions"])
    failures += differences("response_header_versions", response_versions, vector["response_header_versions"])
    return failures


def check_error(vector: Vector) -> list[str] | None:
    code = ErrorCode(integer(vector["code"]))
    failures = differences("name", code.name, vector["name"])
    failures += differences("retriable", code.retriable, vector["retriable"])
    return failures + differences("message", code.message, vector["message"])


KINDS: dict[str, Check] = {
    "protocol-": check_protocol,
    "frames-": check_frame,
    "api_versions-": check_api_versions,
    "errors-": check_error,
}


def check_message(cls: type[Message], version: int, hex_: str, form: object, unknown: object) -> list[str]:
    """Check bytes to message to bytes and JSON, and JSON to message to bytes. `unknown` as in the vector."""
    content = bytes.fromhex(hex_)
    buffer = memoryview(b"head" + content + FRAME_TAIL)
    message = decoder(cls, version)(buffer, 4, 4 + len(content))
    failures = differences("json", to_json(message, version), form)
    failures += differences("bytes", encoded(message, version).hex(), hex_)
    expected = sorted(map(repr, unknown)) if isinstance(unknown, list) else []
    failures += differences("unknown_tagged_fields", sorted(map(repr, unknown_tags(message, []))), expected)
    described = from_json(cls, version, form)
    for entry in unknown if isinstance(unknown, list) else []:
        owner = struct_at(described, entry["path"])
        owner.unknown_tagged_fields = {**(owner.unknown_tagged_fields or {}), entry["tag"]: bytes.fromhex(entry["hex"])}
    if described != message:
        failures.append(f"the message from json, {described}, differs from the message from bytes, {message}")
    return failures + differences("bytes from json", encoded(described, version).hex(), hex_)


def encoded(message: Message, version: int) -> bytes:
    parts: list[bytes | memoryview] = []
    encoder(type(message), version)(message, parts)
    return b"".join(parts)


def message_class(vector: Vector) -> type[Message] | None:
    """Return the class of a vector; None for an undeclared API."""
    if vector["api_key"] is None:
        return RequestHeader if vector["kind"] == "request" else ResponseHeader
    api = API_KEYS.get(integer(vector["api_key"]))
    if api is None:
        return None
    return api.request if vector["kind"] == "request" else api.response


def header_version(api: Api, kind: str, version: int) -> int:
    """Return the version of the header before a message."""
    return api.request_header_version(version) if kind == "request" else api.response_header_version(version)


def unknown_tags(value: object, path: Path) -> Iterator[dict[str, object]]:
    """Yield the unknown tagged fields in a message and all its structs, in the vectors' form."""
    if isinstance(value, list):
        for index, element in enumerate(value):
            yield from unknown_tags(element, [*path, index])
    elif isinstance(value, Message):
        for tag, content in (value.unknown_tagged_fields or {}).items():
            yield {"path": path, "tag": tag, "hex": content.hex()}
        for field in fields_of(type(value)):
            yield from unknown_tags(getattr(value, field.name), [*path, json_name(field)])


def struct_at(message: Message, path: Path) -> Message:
    """Return the struct at `path` from the top of `message`."""
    value: object = message
    for step in path:
        if isinstance(value, list):
            value = value[int(step)]
        else:
            assert isinstance(value, Message)
            value = getattr(value, next(each.name for each in fields_of(type(value)) if json_name(each) == step))
    assert isinstance(value, Message)
    return value


def differences(what: str, actual: object, expected: object) -> list[str]:
    """Return the first difference from the vector."""
    if isinstance(actual, dict) and isinstance(expected, dict):
        if actual.keys() != expected.keys():
            return [f"{what}: fields {list(actual)} instead of {list(expected)}"]
        found = [differences(f"{what}.{key}", actual[key], expected[key]) for key in actual]
    elif isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        pairs = enumerate(zip(actual, expected, strict=True))
        found = [differences(f"{what}[{index}]", one, other) for index, (one, other) in pairs]
    else:
        same = type(actual) is type(expected) and actual == expected
        return [] if same else [f"{what}: {actual!r} instead of {expected!r}"]
    return next((failures for failures in found if failures), [])


def integer(value: object) -> int:
    """Return `value`, which must be an integer."""
    assert isinstance(value, int)
    return value


def text(value: object) -> str:
    """Return `value`, which must be a string."""
    assert isinstance(value, str)
    return value
