"""Combine several undo functions into one."""

from collections.abc import Callable, Iterable

Undo = Callable[[], None]


def undo_all(undos: Iterable[Undo]) -> Undo:
    """Return a function that calls all of them, last first. If creating one fails, undo the others."""
    done: list[Undo] = []

    def undo() -> None:
        while done:
            done.pop()()

    try:
        done.extend(undos)
    except Exception:
        undo()
        raise
    return undo
