"""The checks of arguments: one line that names the call, the argument and the accepted types."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pytest

from sluice.errors import ArgumentError, ConfigError
from sluice.text.arguments import Count, Duration, Index, Port, checks_arguments


class Place(NamedTuple):
    topic: str
    partition: int


@checks_arguments
class Api:
    def __init__(self, size: Count = 1, *, ports: "Sequence[Port]" = ()) -> None:
        self.size = size

    def send(self, topic: str, *values: bytes | str | None, key: bytes | None = None, timeout_s: Duration = 1) -> str:
        """Send."""
        return f"{topic} {len(values)}"

    async def seek(self, place: Place, offset: Index = 0) -> int:
        return offset

    def subscribe(
        self, topics: Iterable[str], mode: Literal["a", "b"] = "a", on: Callable[[], None] | None = None
    ) -> int:
        return len(list(topics))

    def set(self, values: Mapping[str, float | str], exact: bool = False, **rest: object) -> None:
        """Set."""

    def unchecked(self, value: "Unknown", other: Any = None) -> None:  # type: ignore[name-defined]  # noqa: F821
        """Accept anything."""


def test_right_arguments_pass() -> None:
    api = Api(3, ports=[0, 65535])
    assert api.send("a", b"b", "c", None, key=None, timeout_s=0.5) == "a 3"
    assert api.subscribe(name for name in ("a", "b")) == 2
    api.set({"a": 1, "b": 0.5, "c": "d"}, True, other=object())
    api.unchecked(object())
    assert api.send.__doc__ == "Send."


async def test_coroutines_are_checked() -> None:
    assert await Api().seek(Place("a", 0), 5) == 5
    with pytest.raises(ArgumentError, match=r"^seek: place: expected Place, got \('a', 0\) \(tuple\)$"):
        await Api().seek(("a", 0))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"^seek: place.partition: expected an integer, got '0' \(str\)$"):
        await Api().seek(Place("a", "0"))  # type: ignore[arg-type]


async def a_coroutine() -> None:
    """Do nothing."""


WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "an integer for text": (lambda api: api.send(5), "send: topic: expected str, got 5 (int)"),
    "bytes for text": (lambda api: api.send(b"a"), "send: topic: expected str, got b'a' (bytes)"),
    "a class for text": (lambda api: api.send(str), "send: topic: expected str, got the class str"),
    "a coroutine for text": (
        lambda api: api.send(a_coroutine()),
        "send: topic: expected str, got a coroutine (is an await missing?)",
    ),
    "a dict for a value": (
        lambda api: api.send("a", b"b", {"c": 1}),
        "send: values: expected bytes, str or None, got {'c': 1} (dict)",
    ),
    "text for bytes": (lambda api: api.send("a", key="k"), "send: key: expected bytes or None, got 'k' (str)"),
    "a negative time": (
        lambda api: api.send("a", timeout_s=-1),
        "send: timeout_s: expected a number of at least 0, got -1 (int)",
    ),
    "no number as a time": (
        lambda api: api.send("a", timeout_s=float("nan")),
        "send: timeout_s: expected a number of at least 0, got nan (float)",
    ),
    "an infinite time": (
        lambda api: api.send("a", timeout_s=float("inf")),
        "send: timeout_s: expected a number of at least 0, got inf (float)",
    ),
    "None as a time": (
        lambda api: api.send("a", timeout_s=None),
        "send: timeout_s: expected a number of at least 0, got None",
    ),
    "a misspelled argument": (
        lambda api: api.send("a", timeout=1),
        "send: timeout: unknown argument; expected one of topic, key, timeout_s. Did you mean timeout_s?",
    ),
    "a boolean for a number": (lambda _: Api(True), "Api: size: expected an integer of at least 1, got True"),
    "zero for a count": (lambda _: Api(0), "Api: size: expected an integer of at least 1, got 0 (int)"),
    "a number out of range in a list": (
        lambda _: Api(ports=[80, 70000]),
        "Api: ports[1]: expected an integer from 0 to 65535, got 70000 (int)",
    ),
    "text for a list": (lambda api: api.subscribe("orders"), "subscribe: topics: expected a list, got 'orders' (str)"),
    "a wrong element": (lambda api: api.subscribe(["a", 1]), "subscribe: topics[1]: expected str, got 1 (int)"),
    "an unknown choice": (lambda api: api.subscribe([], "c"), "subscribe: mode: expected one of a, b, got 'c' (str)"),
    "no function": (lambda api: api.subscribe([], on=3), "subscribe: on: expected a function or None, got 3 (int)"),
    "a list for a dict": (lambda api: api.set(["a=1"]), "set: values: expected a dict, got ['a=1'] (list)"),
    "a wrong key": (lambda api: api.set({1: 2}), "set: values: key 1: expected str, got 1 (int)"),
    "a wrong value": (lambda api: api.set({"a": None}), "set: values['a']: expected a number or str, got None"),
    "a number for a boolean": (lambda api: api.set({}, 1), "set: exact: expected True or False, got 1 (int)"),
    "a long value": (lambda api: api.send(["a" * 100]), "send: topic: expected str, got ['" + "a" * 45 + "... (list)"),
}


@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=WRONG)
def test_wrong_argument_is_reported_in_one_line(call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        call(Api())
    assert str(raised.value) == message
    assert isinstance(raised.value, ConfigError)
    assert isinstance(raised.value, TypeError)
