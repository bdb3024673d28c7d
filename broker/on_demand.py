"""Parts that an object makes on first use."""

from functools import cached_property
from typing import TypeVar

T = TypeVar("T")


class OnDemand(cached_property[T]):
    """A part that is made when it is first read; `Owner.part.if_made(owner)` reads it without making it."""

    def if_made(self, owner: object) -> T | None:
        assert self.attrname is not None  # set with the class
        return vars(owner).get(self.attrname)
