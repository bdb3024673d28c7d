"""What somebody may have meant who wrote a name that is not known: one way to say it, wherever names are looked up."""

from collections.abc import Iterable

# As difflib has it: with less, short names lead to others that only share some letters.
_CUTOFF = 0.6


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one; None where none is."""
    from difflib import get_close_matches  # with the first mistake: no start waits for it

    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower, 1, _CUTOFF)
    return by_lower[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """`did you mean NAME?`; `otherwise`, where no known name is like this one."""
    near = nearest(name, known)
    return otherwise if near is None else f"did you mean {near}?"


def meant(name: str, known: Iterable[str]) -> str:
    """What goes between "there is no such thing" and " those there are ...": `, did you mean NAME?`, or a semicolon."""
    near = nearest(name, known)
    return ";" if near is None else f", did you mean {near}?"


def one_of(name: str, known: Iterable[str]) -> str:
    """`must be one of A, B`, with the nearest before it, if there is one."""
    names = list(known)
    near = nearest(name, names)
    return ("" if near is None else f"did you mean {near}? It ") + f"must be one of {', '.join(names)}"
