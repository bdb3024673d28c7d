"""Why a dynamic config cannot have a value, with the messages of Kafka's ConfigDef.

Numbers are plain here, unlike in properties files, which also accept sizes (512Ki).
"""

import re

from .value_types import INT_MAX, LONG_MAX, SHORT_MAX, Kind, Range, split_list

_LARGEST = {"SHORT": SHORT_MAX, "INT": INT_MAX, "LONG": LONG_MAX}
_INTEGER = re.compile(r"[+-]?[0-9]{1,40}")  # longer than any long, and bounds the work
_REPLICAS = ".replication.throttled.replicas"  # of leader and follower, each with its own validator in Kafka
# Java prints a double with an exponent outside of this range.
_LEAST_PLAIN, _LEAST_EXPONENTIAL = 1e-3, 1e7


def invalid_value(name: str, kind: Kind, text: str) -> str | None:
    """Return the problem of a value, or None."""
    if kind.type == "LIST":
        problem = _list_problem(name, kind, text)
    elif kind.type in (*_LARGEST, "DOUBLE"):
        problem = _number_problem(name, kind, text)
    elif kind.type == "BOOLEAN" and text.strip().lower() not in ("true", "false"):
        problem = _invalid(name, text, "Expected value to be either true or false")
    elif kind.type == "STRING" and isinstance(kind.limits, tuple):
        problem = _word_problem(name, kind, text.strip())
    else:
        problem = None
    return problem or _other_problem(name, kind, text)


def _other_problem(name: str, kind: Kind, text: str) -> str | None:
    try:
        kind.parse(text)
    except ValueError:
        problem = (
            kind.limits.format(name=name, text=text) if isinstance(kind.limits, str) else f"expected {kind.accepts}"
        )
        return _invalid(name, "[hidden]" if kind.type == "PASSWORD" else text, problem)
    return None


def _invalid(name: str, value: object, problem: str) -> str:
    return f"Invalid value {value} for configuration {name}: {problem}"


def _word_problem(name: str, kind: Kind, text: str) -> str | None:
    words = kind.limits
    if not isinstance(words, tuple) or isinstance(words, Range) or not words or text in words:
        return None
    return _invalid(name, text, f"String must be one of: {', '.join(words)}")


def _list_problem(name: str, kind: Kind, text: str) -> str | None:
    items = split_list(text)
    if name.endswith(_REPLICAS):
        return _replicas_problem(name, kind, text)
    if len(set(items)) < len(items):
        return f"Configuration '{name}' values must not be duplicated."
    if "" in items:
        return f"Configuration '{name}' values must not be empty."
    return next(filter(None, (_word_problem(name, kind, item) for item in items)), None)


def _replicas_problem(name: str, kind: Kind, text: str) -> str | None:
    if _other_problem(name, kind, text) is None:
        return None
    form = "[partitionId]:[brokerId]"
    words = f"{name} must be the literal '*' or a list of replicas in the following format: {form},{form},..."
    return _invalid(name, f"[{', '.join(split_list(text))}]", words)


def _number_problem(name: str, kind: Kind, text: str) -> str | None:
    value: float | None
    value = _double(text) if kind.type == "DOUBLE" else _integer(text, _LARGEST[kind.type])
    if value is None:
        return _invalid(name, text, f"Not a number of type {kind.type}")
    if not isinstance(kind.limits, Range):
        return None
    least, most, also = kind.limits
    if least <= value <= most or value == also:
        return None
    if also is not None:
        problem = f"Value must be between {least} and {most} or equal to {also}"
    else:
        problem = f"Value must be at least {least}" if value < least else f"Value must be no more than {most}"
    return _invalid(name, java_double(value) if isinstance(value, float) else value, problem)


def _integer(text: str, largest: int) -> int | None:
    value = int(text) if _INTEGER.fullmatch(text.strip()) else None
    return value if value is not None and -largest - 1 <= value <= largest else None


def _double(text: str) -> float | None:
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def java_double(value: float) -> str:
    """Return a number as Java prints it: 1.0E20."""
    if value == 0 or _LEAST_PLAIN <= abs(value) < _LEAST_EXPONENTIAL:
        return repr(value)
    # The fewest digits that are the same number; a double needs at most 17.
    shortest = next(text for digits in range(1, 18) if float(text := f"{value:.{digits}e}") == value)
    mantissa, _, exponent = shortest.partition("e")
    return f"{mantissa}E{int(exponent)}"
