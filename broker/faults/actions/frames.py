"""Answers that are no answers: the right bytes in a frame that is wrong, or wrong bytes in one that is right.

A client reads 4 bytes of size, 4 of correlation id, and then what the API and version say.
"""

from collections.abc import Callable
from random import Random  # noqa: TID251  (seeded by what a rule's own drew)
from struct import Struct
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from msgspec import Meta

from sluice.broker.faults.matching.errors import RuleProblem
from sluice.broker.faults.matching.match import Match

from .action import RequestAction, RuleHit
from .response_frame import ResponseFrame

if TYPE_CHECKING:
    from sluice.broker.faults.interfaces import InterceptedRequest

_INT32 = 2**32
_INT32_MAX = 2**31 - 1
_ID_AT = 4
_BODY_AT = 8
_pack_size = Struct(">i").pack
_pack_unsigned: Callable[[int], bytes] = Struct(">I").pack
_unpack_unsigned = Struct(">I").unpack_from


class CorrelationId(RequestAction, frozen=True, tag="correlation-id"):
    """Answers under another number than the request had: to the client that is an answer to something else."""

    SUMMARY: ClassVar[str] = "Answers with a wrong correlation id."

    by: Annotated[int, Meta(description="what is added to the right one")] = 1

    def check(self, match: Match) -> None:
        if self.by % _INT32 == 0:
            raise RuleProblem("action.by", f"{self.by} leaves the correlation id as it is")

    def leaving(self, intercepted: "InterceptedRequest", hit: RuleHit, frame: ResponseFrame) -> None:
        (right,) = _unpack_unsigned(frame.data, _ID_AT)
        wrong = _pack_unsigned((right + self.by) % _INT32)
        frame.data = frame.data[:_ID_AT] + wrong + frame.data[_BODY_AT:]


class Truncate(RequestAction, frozen=True, tag="truncate"):
    """Ends the answer too early, in a frame that says so: the client gets all of the frame, and no whole message."""

    SUMMARY: ClassVar[str] = "Answers with a frame that ends in the middle of the message."

    keep: Annotated[int | None, Meta(description="bytes of the message, its header included; left out: half")] = None

    def check(self, match: Match) -> None:
        if self.keep is not None and self.keep < 0:
            raise RuleProblem("action.keep", f"{self.keep}: must be 0 or more")

    def leaving(self, intercepted: "InterceptedRequest", hit: RuleHit, frame: ResponseFrame) -> None:
        message = frame.data[_ID_AT:]
        kept = message[: len(message) // 2 if self.keep is None else self.keep]
        frame.data = _pack_size(len(kept)) + kept


class Garbage(RequestAction, frozen=True, tag="garbage"):
    """Answers with bytes that mean nothing, as many as the answer has."""

    SUMMARY: ClassVar[str] = "Answers with random bytes."
    DRAWS: ClassVar[bool] = True

    what: Annotated[
        Literal["body", "frame"], Meta(description="what is random: all behind the correlation id, or the size, too")
    ] = "body"

    def draw(self, random: "Random") -> float:
        return random.getrandbits(32)

    def leaving(self, intercepted: "InterceptedRequest", hit: RuleHit, frame: ResponseFrame) -> None:
        right = frame.data[: _BODY_AT if self.what == "body" else 0]
        noise = Random(hit.drawn).randbytes(len(frame.data) - len(right))  # noqa: S311  (repeatable)
        frame.data = right + noise


class Oversize(RequestAction, frozen=True, tag="oversize"):
    """Claims that the answer is larger than it is. The client refuses it, or waits for what does not come."""

    SUMMARY: ClassVar[str] = "Answers with a frame that claims to be huge."

    size: Annotated[int, Meta(description="bytes that the frame claims to have")] = _INT32_MAX

    def check(self, match: Match) -> None:
        if not 0 <= self.size <= _INT32_MAX:
            raise RuleProblem("action.size", f"{self.size}: must be between 0 and {_INT32_MAX}")

    def leaving(self, intercepted: "InterceptedRequest", hit: RuleHit, frame: ResponseFrame) -> None:
        frame.data = _pack_size(self.size) + frame.data[_ID_AT:]
