"""Lists, dicts and messages that are not used any more, emptied in slices: a million objects take 0.1 s to free."""

import sys
from collections.abc import Collection
from functools import cache

from sluice.protocol.message import Message, fields_of

from .pausing import LONG

_FREED_AT_ONCE = 32  # elements, of up to ten objects each


class _Holder:
    def __init__(self) -> None:
        self.array = list[object]()

    def references(self) -> int:
        array = self.array
        return sys.getrefcount(array)


_OWN_REFERENCES = _Holder().references()  # of an object that only its container and a variable refer to


class Unused:
    """Containers to empty; those of messages are found when it is their turn."""

    def __init__(self) -> None:
        self._containers: list[Collection[object]] = []

    def __bool__(self) -> bool:
        return bool(self._containers)

    def add(self, container: Collection[object]) -> None:
        """Add a list or dict to which nothing else refers."""
        self._containers.append(container)

    def free_some(self) -> None:
        """Free up to 32 elements of the container that was added last."""
        container = self._containers.pop()
        place = len(self._containers)  # below what it contains, which is freed first
        if isinstance(container, dict):
            for _ in range(min(len(container), _FREED_AT_ONCE)):
                container.popitem()
        else:
            assert isinstance(container, list)
            for index in range(-min(len(container), _FREED_AT_ONCE), 0) if _have_arrays(container) else ():
                element = container[index]
                if sys.getrefcount(element) <= _OWN_REFERENCES:
                    self._add_arrays(element)
                del element
            del container[-_FREED_AT_ONCE:]
        if container:
            self._containers.insert(place, container)

    def _add_arrays(self, message: Message) -> None:
        """Add the long arrays of a message. Arrays and single structs with other references are kept."""
        for name in _structs_of(type(message)):
            struct = getattr(message, name)
            if struct is not None and sys.getrefcount(struct) <= _OWN_REFERENCES:
                self._add_arrays(struct)
        for name in _arrays_of(type(message)):
            array = getattr(message, name)
            if not array or sys.getrefcount(array) > _OWN_REFERENCES:
                continue
            if len(array) >= LONG:
                self._containers.append(array)
                continue
            for element in array if _have_arrays(array) else ():
                self._add_arrays(element)


@cache
def _arrays_of(cls: type[Message]) -> tuple[str, ...]:
    return tuple(field.name for field in fields_of(cls) if field.is_array)


@cache
def _structs_of(cls: type[Message]) -> tuple[str, ...]:
    return tuple(field.name for field in fields_of(cls) if field.struct is not None and not field.is_array)


def _have_arrays(array: list[object]) -> bool:
    cls = type(array[0])
    return issubclass(cls, Message) and bool(_arrays_of(cls) or _structs_of(cls))
