from collections.abc import Callable, Iterable

Undo = Callable[[], None]


def undo_all(undos: Iterable[Undo]) -> Undo:
    """Undo all, last first. If creating one fails, undo the others at once."""
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
