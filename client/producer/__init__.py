"""The producer: `Producer` and the metadata of a sent record."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .producer import Producer as Producer
    from .producer import RecordMetadata as RecordMetadata

__all__ = ["Producer", "RecordMetadata"]


def __getattr__(name: str) -> object:
    """Import a public name on first use: the other modules of this package are often used without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import producer

    return getattr(producer, name)
