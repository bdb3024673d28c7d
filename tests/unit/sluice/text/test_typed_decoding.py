"""Decoding errors name the path and the accepted values."""

from typing import Annotated, Literal

import pytest
from msgspec import Meta, Struct

from sluice.text.typed_decoding import ACCEPTED, DecodeError, read, read_texts

Name = Annotated[str, Meta(pattern="^[a-z]+$", description="small letters", extra=ACCEPTED)]


class Circle(Struct, tag_field="kind", tag="circle", forbid_unknown_fields=True):
    radius: Annotated[int, Meta(ge=1)]


class Square(Struct, tag_field="kind", tag="square", forbid_unknown_fields=True):
    side: float
    corners: Literal["sharp", "round"] = "sharp"


class Drawing(Struct, forbid_unknown_fields=True):
    name: Name = "a"
    shapes: list[Circle | Square | Name] = []
    colours: dict[str, str | int] = {}
    visible: bool = True
    size: tuple[int, ...] = ()


SAID: dict[str, object] = {
    "expected a table, got a list": [],
    "nme: unknown field; expected one of name, shapes, colours, visible, size. Did you mean name?": {"nme": "a"},
    "x: unknown field; expected one of name, shapes, colours, visible, size": {"x": 1},
    "name: expected small letters, got 'A'": {"name": "A"},
    "name: expected small letters, got a whole number": {"name": 1},
    "visible: expected true or false, got 'yes'": {"visible": "yes"},
    "visible: expected true or false, got nothing": {"visible": None},
    "shapes: expected a list, got a table": {"shapes": {}},
    "size[1]: expected a whole number, got a number": {"size": [1, 2.5]},
    "colours.b: expected a whole number or text, got a list": {"colours": {"a": 1, "b": []}},
    "shapes[1].kind: expected one of circle, square, got line": {"shapes": ["a", {"kind": "line"}]},
    "shapes[0].kind: missing; expected one of circle, square": {"shapes": [{"radius": 1}]},
    "shapes[0].radius: missing": {"shapes": [{"kind": "circle"}]},
    "shapes[0].radius: expected a whole number >= 1, got 0": {"shapes": [{"kind": "circle", "radius": 0}]},
    "shapes[0].raduis: unknown field; expected one of kind, radius. Did you mean radius?": {
        "shapes": [{"kind": "circle", "raduis": 1}]
    },
    "shapes[0].corners: expected one of round, sharp, got blunt": {
        "shapes": [{"kind": "square", "side": 1, "corners": "blunt"}]
    },
}


@pytest.mark.parametrize(("said", "given"), SAID.items(), ids=SAID)
def test_decoding_error(given: object, said: str) -> None:
    with pytest.raises(DecodeError) as decode_error:
        read(given, Drawing)
    assert str(decode_error.value) == said


def test_valid_document_is_decoded() -> None:
    given = {"name": "b", "shapes": [{"kind": "square", "side": 2}, "c"], "size": [1, 2]}
    assert read(given, Drawing) == Drawing("b", [Square(2.0), "c"], size=(1, 2))


class Question(Struct, forbid_unknown_fields=True):
    number: int = 0
    follow: bool = False
    names: list[str] = []


def test_text_values_are_decoded_by_type() -> None:
    given: dict[str, str | list[str]] = {"number": "5", "follow": "true", "names": ["a", "5"]}
    assert read_texts(given, Question) == Question(5, True, ["a", "5"])


TEXT_VALUES = [
    ({"number": "x"}, "number: expected a whole number, got 'x'"),
    ({"number": "x" * 100}, f"number: expected a whole number, got '{'x' * 79}..."),
    ({"follow": "maybe"}, "follow: expected true or false, got 'maybe'"),
    ({"colour": "red"}, "colour: unknown field; expected one of number, follow, names"),
]


@pytest.mark.parametrize(("given", "said"), TEXT_VALUES)
def test_decoding_error_of_text_values(given: dict[str, str | list[str]], said: str) -> None:
    with pytest.raises(DecodeError) as decode_error:
        read_texts(given, Question)
    assert str(decode_error.value) == said
