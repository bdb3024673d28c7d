"""Messages as JSON in the form of Kafka's JSON converters, for test vectors.

Names are camelCase, bytes and records base64, uuids Kafka's 22 characters. Fields that the version lacks, tagged fields
at their default, and unknown ones are omitted. Unlike Kafka's, the form has the bytes of records.
"""

from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from typing import TypeVar

from sluice.protocol.message import Field, Message, fields_of

M = TypeVar("M", bound=Message)


def to_json(message: Message, version: int) -> dict[str, object]:
    shown = [field for field in fields_of(type(message)) if version in field.versions]
    return {
        json_name(field): _to_json(field, getattr(message, field.name), version)
        for field in shown
        if field.tag is None or not field.is_default(getattr(message, field.name))
    }


def from_json(cls: type[M], version: int, form: object) -> M:
    message = cls()
    for field in fields_of(cls):
        value = _object(form).get(json_name(field), field)
        if value is not field and version in field.versions:
            setattr(message, field.name, _from_json(field, value, version))
    return message


def json_name(field: Field) -> str:
    first, *others = field.name.split("_")
    return first + "".join(map(str.capitalize, others))


def _to_json(field: Field, value: object, version: int) -> object:
    if value is None:
        return None
    if field.is_array:
        assert isinstance(value, list)
        return [_one_to_json(field, element, version) for element in value]
    return _one_to_json(field, value, version)


def _one_to_json(field: Field, value: object, version: int) -> object:
    if isinstance(value, Message):
        return to_json(value, version)
    assert field.type is not None
    match field.type.name:
        case "uuid":
            return urlsafe_b64encode(_bytes(value)).decode().rstrip("=")
        case "bytes" | "records":
            return b64encode(_bytes(value)).decode()
    return value


def _from_json(field: Field, value: object, version: int) -> object:
    if value is None:
        return None
    if field.is_array:
        assert isinstance(value, list)
        return [_one_from_json(field, element, version) for element in value]
    return _one_from_json(field, value, version)


def _one_from_json(field: Field, value: object, version: int) -> object:
    if field.struct is not None:
        return from_json(field.struct, version, value)
    assert field.type is not None
    match field.type.name:
        case "uuid":
            return urlsafe_b64decode(f"{value}==")
        case "bytes" | "records":
            return b64decode(str(value))
        case "float64":
            return float(str(value))
    return value


def _bytes(value: object) -> bytes:
    if isinstance(value, tuple | list):
        return b"".join(value)
    assert isinstance(value, bytes | memoryview)
    return bytes(value)


def _object(form: object) -> dict[str, object]:
    assert isinstance(form, dict), f"{form!r} is not a JSON object"
    return form
