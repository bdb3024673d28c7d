"""The producer: `Producer` and the metadata of a sent record."""

from .batch import RecordMetadata
from .producer import Producer

__all__ = ["Producer", "RecordMetadata"]
