"""Undoing several things as one."""

from collections.abc import Callable, Iterable

Undo = Callable[[], None]


def undo_all(undos: Iterable[Undo]) -> Undo:
    """What undoes all of them, the last first; those that were done are undone at once where the next cannot be."""
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
