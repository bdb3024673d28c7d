"""The parts of an error message: `<where>: <problem>; expected <what is accepted>, got <value>. <remedy>`."""

from collections.abc import Iterable

# One letter in five may be wrong. Below it, short names match other words: NOPE is not NONE.
_CUTOFF = 0.8
_LONGEST_SHOWN = 80  # characters of a value, so that the message stays readable


def expected(accepted: str, given: object) -> str:
    """Return `expected ACCEPTED, got GIVEN`."""
    return f"expected {accepted}, got {shown(given)}"


def one_of(known: Iterable[str], given: str) -> str:
    """Return `expected one of A, B, got GIVEN`, and the most similar name, if any."""
    names = list(known)
    return expected(f"one of {', '.join(names)}", given) + did_you_mean(given, names)


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """Return `unknown WHAT; expected one of A, B`, and the most similar name; the caller adds the wrong name."""
    names = list(known)
    return f"unknown {what}; expected one of {', '.join(names)}{did_you_mean(name, names)}"


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    near = nearest(name, known)
    return otherwise if near is None else f". Did you mean {near}?"


def nearest(name: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # only errors load it

    by_lower, given = {each.lower(): each for each in known}, name.lower()
    near = get_close_matches(given, by_lower, 1, _CUTOFF) or [
        each
        for each in by_lower
        if sorted(each) == sorted(given)  # letters are exchanged, as in shpo
    ]
    return by_lower[near[0]] if near else None


def shown(given: object) -> str:
    """Return a value in one line, in quotation marks if it would be ambiguous without."""
    text = str(given)
    if not text.isprintable() or text != text.strip() or not text:
        text = repr(text)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def printable(text: str) -> str:
    """Escape the characters that would end the line, color it or hide a part of it."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
