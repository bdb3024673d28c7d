"""Malformed responses.

A frame has 4 bytes of size, 4 bytes of correlation id, and the body as specified by API and version.
"""

from collections.abc import Callable
from random import Random  # noqa: TID251  (seeded by a number that the rule's generator drew)
from struct import Struct
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.matching.values import RuleProblem
from sluice.broker.faults.requests.fault_execution import FaultExecution, RequestAction, ResponseFrame, RuleHit

_INT32 = 2**32
_INT32_MAX = 2**31 - 1
_ID_AT = 4
_BODY_AT = 8
_pack_size = Struct(">i").pack
_pack_unsigned: Callable[[int], bytes] = Struct(">I").pack
_unpack_unsigned = Struct(">I").unpack_from


class CorrelationId(RequestAction, frozen=True, tag="correlation-id"):
    """Responds with a wrong correlation id."""

    by: Annotated[int, Meta(description="number added to the correct one")] = 1

    def check(self, match: Match) -> None:
        if self.by % _INT32 == 0:
            raise RuleProblem("action.by", f"{self.by} does not change the correlation id; expected another number")

    def leaving(self, intercepted: FaultExecution, hit: RuleHit, frame: ResponseFrame) -> None:
        (right,) = _unpack_unsigned(frame.data, _ID_AT)
        wrong = _pack_unsigned((right + self.by) % _INT32)
        frame.data = frame.data[:_ID_AT] + wrong + frame.data[_BODY_AT:]


class Truncate(RequestAction, frozen=True, tag="truncate"):
    """Responds with a complete frame whose message ends too early."""

    keep: Annotated[int | None, Meta(description="bytes of the message to keep, with its header; default: half")] = None

    def check(self, match: Match) -> None:
        if self.keep is not None and self.keep < 0:
            raise RuleProblem("action.keep", f"expected 0 or more, got {self.keep}")

    def leaving(self, intercepted: FaultExecution, hit: RuleHit, frame: ResponseFrame) -> None:
        message = frame.data[_ID_AT:]
        kept = message[: len(message) // 2 if self.keep is None else self.keep]
        frame.data = _pack_size(len(kept)) + kept


class Garbage(RequestAction, frozen=True, tag="garbage"):
    """Replaces the response by as many random bytes."""

    DRAWS: ClassVar[bool] = True

    what: Annotated[
        Literal["body", "frame"], Meta(description="body: all after the correlation id; frame: also id and size")
    ] = "body"

    def draw(self, random: Random) -> float:
        return random.getrandbits(32)

    def leaving(self, intercepted: FaultExecution, hit: RuleHit, frame: ResponseFrame) -> None:
        right = frame.data[: _BODY_AT if self.what == "body" else 0]
        noise = Random(hit.drawn).randbytes(len(frame.data) - len(right))  # noqa: S311  (repeatable)
        frame.data = right + noise


class Oversize(RequestAction, frozen=True, tag="oversize"):
    """Claims a larger frame size than the response has; the client rejects it, or waits for more bytes."""

    size: Annotated[int, Meta(description="bytes that the frame claims to have")] = _INT32_MAX

    def check(self, match: Match) -> None:
        if not 0 <= self.size <= _INT32_MAX:
            raise RuleProblem("action.size", f"expected a number from 0 to {_INT32_MAX}, got {self.size}")

    def leaving(self, intercepted: FaultExecution, hit: RuleHit, frame: ResponseFrame) -> None:
        frame.data = _pack_size(self.size) + frame.data[_ID_AT:]
