from collections.abc import Callable, Iterable
from contextlib import ExitStack

Undo = Callable[[], None]


def undo_all(undos: Iterable[Undo]) -> Undo:
    """Undo all, last first. If creating one fails, undo the others at once."""
    with ExitStack() as stack:
        for undo in undos:
            stack.callback(undo)
        return stack.pop_all().close
