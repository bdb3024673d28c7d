"""Checks of the arguments of public calls against their annotations, so that an error names the argument.

@checks_arguments
class Producer:
async def send(self, topic: str, value: bytes | str | None = None, *, timeout_s: Duration = 10): ...

producer.send(5)                # send: topic: expected str, got 5 (int)
producer.send("a", valu=b"b")   # send: valu: unknown argument; expected one of topic, value, timeout_s. Did you ...
"""

import asyncio
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import wraps
from math import isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, is_typeddict

from sluice.errors import ArgumentError

from .error_text import expected, unknown

_T = TypeVar("_T")
_MOST_CHECKED = 1000  # elements of a collection


class Range(NamedTuple):
    least: float
    most: float = float("inf")

    def __str__(self) -> str:
        return f"of at least {self.least:g}" if self.most == float("inf") else f"from {self.least:g} to {self.most:.0f}"


Duration = Annotated[float, Range(0)]
Count = Annotated[int, Range(1)]
Index = Annotated[int, Range(0, 2**31 - 1)]
Timestamp = Annotated[int, Range(0, 2**63 - 1)]
Milliseconds = Annotated[int, Range(0)]
Port = Annotated[int, Range(0, 65535)]


class Mismatch(Exception):  # noqa: N818  (always caught)
    """A value that its annotation excludes."""

    def __init__(self, accepted: str, given: object, inside: str = "") -> None:
        self.accepted, self.given, self.inside = accepted, given, inside


def checks_arguments(cls: type[_T], *, but: tuple[str, ...] = ()) -> type[_T]:
    """Check the arguments of a class's own public methods and of `__init__`."""
    for name, method in list(vars(cls).items()):
        if inspect.isfunction(method) and name not in but and (name == "__init__" or not name.startswith("_")):
            where = cls.__name__ if name == "__init__" else name
            setattr(cls, name, checked(method, where))
    return cls


def checked(function: Callable[..., Any], where: str, *, skip: int = 1) -> Callable[..., Any]:
    parameters = list(inspect.signature(function).parameters.values())[skip:]
    named = [one for one in parameters if one.kind is not one.VAR_POSITIONAL]
    accepts_any_name = any(one.kind is one.VAR_KEYWORD for one in parameters)
    annotations: dict[str, object] = {}
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    rest = next((one.name for one in parameters if one.kind is one.VAR_POSITIONAL), None)

    def check(args: tuple[object, ...], kwargs: Mapping[str, object]) -> None:
        if not annotations:
            annotations.update({one.name: _resolved(one.annotation, function) for one in parameters})
        values = args[skip:]
        for parameter, value in zip(positional, values, strict=False):
            check_argument(where, parameter.name, value, annotations[parameter.name])
        if rest is not None:
            for value in values[len(positional) :]:
                check_argument(where, rest, value, annotations[rest])
        for name, value in kwargs.items():
            if name in annotations:
                check_argument(where, name, value, annotations[name])
            elif not accepts_any_name:
                raise ArgumentError(f"{where}: {name}: {unknown('argument', name, [one.name for one in named])}")

    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def awaited(*args: object, **kwargs: object) -> object:
            __tracebackhide__ = True
            check(args, kwargs)
            return await function(*args, **kwargs)

        return awaited

    @wraps(function)
    def called(*args: object, **kwargs: object) -> object:
        __tracebackhide__ = True
        check(args, kwargs)
        return function(*args, **kwargs)

    return called


def check_argument(where: str, name: str, value: object, annotation: object) -> None:
    """Raise ArgumentError unless the value has the annotated type."""
    try:
        _match(value, annotation)
    except Mismatch as error:
        place = f"{where}: {name}{error.inside}"
        raise ArgumentError(f"{place}: {expected(error.accepted, described(error.given))}") from None


def described(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if asyncio.iscoroutine(value):
        value.close()  # else Python also warns that it was never awaited
        return "a coroutine (is an await missing?)"
    text = repr(value)
    if len(text) > 50:
        text = f"{text[:47]}..."
    return text if value is None or isinstance(value, bool) else f"{text} ({type(value).__name__})"


def type_text(annotation: Any) -> str:
    """Return the accepted types, as in `str, bytes or None`."""
    names = list(dict.fromkeys(_names(annotation)))
    if "None" in names:
        names.append(names.pop(names.index("None")))
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _names(annotation: Any) -> list[str]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        return [name for one in arguments for name in _names(one)]
    if origin is Annotated:
        return [f"{'an integer' if arguments[0] is int else 'a number'} {arguments[1]}"]
    if origin is Literal:
        return [f"one of {', '.join(map(str, arguments))}"]
    if annotation in (None, NoneType):
        return ["None"]
    kind: Any = origin or annotation
    if kind in _PLAIN:
        return [_PLAIN[kind]]
    return ["a dict" if is_typeddict(kind) else getattr(kind, "__name__", str(kind))]


_PLAIN: dict[object, str] = {
    float: "a number",
    int: "an integer",
    bool: "True or False",
    type: "a class",
    Callable: "a function",
    Mapping: "a dict",
    Sequence: "a list",
    Iterable: "a list",
    Collection: "a list",
}


def _match(value: object, annotation: object) -> None:
    # Accept everything that cannot be decided at run time.
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation in (Any, object, inspect.Parameter.empty) or isinstance(annotation, TypeVar | str):
        return
    if origin in (Union, UnionType):
        _match_any(value, arguments, annotation)
    elif origin is Annotated:
        _match_range(value, annotation, arguments)
    elif origin is Literal:
        if value not in arguments:
            raise Mismatch(type_text(annotation), value)
    elif annotation in (None, NoneType):
        if value is not None:
            raise Mismatch("None", value)
    elif annotation in (int, float):
        _match_number(value, annotation)
    elif origin is not None:
        _match_generic(value, annotation, origin, arguments)
    elif is_typeddict(annotation):
        if not isinstance(value, Mapping):
            raise Mismatch("a dict", value)
    elif isinstance(annotation, type) and not getattr(annotation, "_is_protocol", False):
        _match_class(value, annotation)


def _match_any(value: object, annotations: tuple[object, ...], union: object) -> None:
    inside: Mismatch | None = None
    for one in annotations:
        try:
            _match(value, one)
        except Mismatch as error:
            inside = error if error.inside or (get_origin(one) is Annotated and type(value) in (int, float)) else inside
        else:
            return
    if inside is not None and inside.inside:
        raise inside
    raise Mismatch(type_text(union), value)


def _match_range(value: object, annotation: object, arguments: tuple[Any, ...]) -> None:
    try:
        _match(value, arguments[0])
    except Mismatch:
        raise Mismatch(type_text(annotation), value) from None
    if not arguments[1].least <= value <= arguments[1].most or not isfinite(value):  # type: ignore[arg-type]
        raise Mismatch(type_text(annotation), value)


def _match_number(value: object, annotation: object) -> None:
    is_number = isinstance(value, int) or (annotation is float and isinstance(value, float))
    if not is_number or isinstance(value, bool):
        raise Mismatch("an integer" if annotation is int else "a number", value)
    if value != value:  # NaN
        raise Mismatch("a number", value)


def _match_class(value: object, annotation: type) -> None:
    if not isinstance(value, annotation) or (annotation is not bool and annotation is not object and value is True):
        raise Mismatch(type_text(annotation), value)
    if isinstance(value, tuple) and hasattr(annotation, "_fields"):
        for field, hint in annotation.__annotations__.items():
            try:
                _match(getattr(value, field), hint)
            except Mismatch as error:
                raise Mismatch(error.accepted, error.given, f".{field}{error.inside}") from None


def _match_generic(value: Any, annotation: object, origin: Any, arguments: tuple[Any, ...]) -> None:
    if origin is type:
        if not isinstance(value, type):
            raise Mismatch(f"a class of {type_text(arguments[0])}", value)
        return
    if origin is Callable or getattr(origin, "__name__", "") == "Callable":
        if not callable(value):
            raise Mismatch("a function", value)
        return
    if not isinstance(origin, type) or getattr(origin, "_is_protocol", False):
        return
    if not isinstance(value, origin) or isinstance(value, str | bytes | bytearray):
        raise Mismatch(type_text(annotation), value)
    if origin is tuple and arguments and arguments[-1] is not ...:
        elements: Any = value
        if len(elements) != len(arguments):
            raise Mismatch(f"a tuple of {len(arguments)}", value)
        for each, argument in zip(elements, arguments, strict=True):
            _match_inside(each, argument, "")
    elif isinstance(value, Mapping) and len(arguments) == 2:
        for key, each in list(value.items())[:_MOST_CHECKED]:
            _match_inside(key, arguments[0], f": key {key!r}")
            _match_inside(each, arguments[1], f"[{key!r}]")
    elif len(arguments) == 1 and isinstance(value, list | tuple | AbstractSet) and issubclass(origin, Iterable):
        for index, each in enumerate(list(value)[:_MOST_CHECKED]):
            _match_inside(each, arguments[0], f"[{index}]" if isinstance(value, list | tuple) else "")


def _match_inside(value: object, annotation: object, inside: str) -> None:
    try:
        _match(value, annotation)
    except Mismatch as error:
        raise Mismatch(error.accepted, error.given, f"{inside}{error.inside}") from None


def _resolved(annotation: object, function: Callable[..., Any]) -> object:
    """Return the annotation; one with names for type checkers stays a string, which accepts everything."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, function.__globals__)  # noqa: S307  (an annotation of this package)
    except (NameError, TypeError):
        return annotation
