"""Suggestions for unknown names."""

from collections.abc import Iterable

# The default of difflib. With a lower one, short names match others that only share some letters.
_CUTOFF = 0.6


def nearest(name: str, known: Iterable[str]) -> str | None:
    from difflib import get_close_matches  # only errors load it

    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower, 1, _CUTOFF)
    return by_lower[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return `did you mean NAME?`, or `otherwise` without a similar name."""
    near = nearest(name, known)
    return otherwise if near is None else f"did you mean {near}?"


def meant(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean NAME?` or a semicolon, to put between an error and " accepted are ..."."""
    near = nearest(name, known)
    return ";" if near is None else f", did you mean {near}?"


def one_of(name: str, known: Iterable[str]) -> str:
    """Return `must be one of A, B`, after the most similar name if there is one."""
    names = list(known)
    near = nearest(name, names)
    return ("" if near is None else f"did you mean {near}? It ") + f"must be one of {', '.join(names)}"
