"""A topic of the upstream, of which a proxy knows the name."""

from msgspec import Struct


class KnownTopic(Struct, frozen=True):
    name: str
