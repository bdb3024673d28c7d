"""What somebody may have meant who wrote a name that is not known: one way to say it, wherever names are looked up."""

from collections.abc import Iterable

# Below difflib's usual 0.6: names here are words of several parts, of which one is often left out.
_CUTOFF = 0.5


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like this one; None where none is."""
    from difflib import get_close_matches  # with the first mistake: no start waits for it

    by_lower = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_lower, 1, _CUTOFF)
    return by_lower[near[0]] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`did you mean NAME?`; empty where no known name is like this one."""
    near = nearest(name, known)
    return "" if near is None else f"did you mean {near}?"
