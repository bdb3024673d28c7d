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


SAID: list[tuple[object, str]] = [
    ([], "expected a table, got a list"),
    ({"nme": "a"}, "nme: unknown field; expected one of name, shapes, colours, visible, size. Did you mean name?"),
    ({"x": 1}, "x: unknown field; expected one of name, shapes, colours, visible, size"),
    ({"name": "A"}, "name: expected small letters, got 'A'"),
    ({"name": 1}, "name: expected small letters, got a whole number"),
    ({"visible": "yes"}, "visible: expected true or false, got 'yes'"),
    ({"visible": None}, "visible: expected true or false, got nothing"),
    ({"shapes": {}}, "shapes: expected a list, got a table"),
    ({"size": [1, 2.5]}, "size[1]: expected a whole number, got a number"),
    ({"colours": {"a": 1, "b": []}}, "colours.b: expected a whole number or text, got a list"),
    ({"shapes": ["a", {"kind": "line"}]}, "shapes[1].kind: expected one of circle, square, got line"),
    ({"shapes": [{"radius": 1}]}, "shapes[0].kind: missing; expected one of circle, square"),
    ({"shapes": [{"kind": "circle"}]}, "shapes[0].radius: missing"),
    ({"shapes": [{"kind": "circle", "radius": 0}]}, "shapes[0].radius: expected a whole number >= 1, got 0"),
    (
        {"shapes": [{"kind": "circle", "raduis": 1}]},
        "shapes[0].raduis: unknown field; expected one of kind, radius. Did you mean radius?",
    ),
    (
        {"shapes": [{"kind": "square", "side": 1, "corners": "blunt"}]},
        "shapes[0].corners: expected one of round, sharp, got blunt",
    ),
]


@pytest.mark.parametrize(("given", "said"), SAID, ids=[said for _, said in SAID])
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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"number": "x"}, "number: expected a whole number, got 'x'"),
        ({"number": "x" * 100}, f"number: expected a whole number, got '{'x' * 79}..."),
        ({"follow": "maybe"}, "follow: expected true or false, got 'maybe'"),
        ({"colour": "red"}, "colour: unknown field; expected one of number, follow, names"),
    ],
)
def test_decoding_error_of_text_values(given: dict[str, str | list[str]], said: str) -> None:
    with pytest.raises(DecodeError) as decode_error:
        read_texts(given, Question)
    assert str(decode_error.value) == said
