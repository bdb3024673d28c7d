"""`black-hole` and `close`: requests without a response."""

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from sluice.broker.requests.context import Outcome
from sluice.protocol.message import Message

from .action import RequestAction, RuleHit
from .response_frame import ResponseFrame

if TYPE_CHECKING:
    from sluice.broker.faults.interfaces import InterceptedRequest

# Longer than any client's timeout.
_NEVER_MS = 2.0**40


class BlackHole(RequestAction, frozen=True, tag="black-hole"):
    """Never responds; the connection stays open. If the rule is removed, the request continues."""

    when: Annotated[
        Literal["before", "after"], Meta(description="before: the request is not handled either; after: it is handled")
    ] = "before"

    def before(self, intercepted: "InterceptedRequest", hit: RuleHit) -> Message | Outcome | None:
        if self.when != "before":
            return None
        outcome = intercepted.wait_before(hit.fault, _NEVER_MS)
        intercepted.ctx.session.connection.close_on_eof()
        return outcome

    def after(self, intercepted: "InterceptedRequest", hit: RuleHit, outcome: Message | Outcome) -> Message | Outcome:
        if self.when != "after":
            return outcome
        outcome = intercepted.wait_after(hit.fault, _NEVER_MS, outcome)
        intercepted.ctx.session.connection.close_on_eof()
        return outcome


class Close(RequestAction, frozen=True, tag="close"):
    """Closes the connection instead of, or in the middle of, the response."""

    when: Annotated[
        Literal["before", "after", "mid-response"],
        Meta(description="before or after the request is handled, or after half of the response was sent"),
    ] = "before"
    how: Annotated[Literal["fin", "rst"], Meta(description="orderly (FIN), or by a reset (RST)")] = "fin"

    def before(self, intercepted: "InterceptedRequest", hit: RuleHit) -> Message | Outcome | None:
        return intercepted.close(hit.fault, self.how) if self.when == "before" else None

    def after(self, intercepted: "InterceptedRequest", hit: RuleHit, outcome: Message | Outcome) -> Message | Outcome:
        return intercepted.close(hit.fault, self.how) if self.when == "after" else outcome

    def leaving(self, intercepted: "InterceptedRequest", hit: RuleHit, frame: ResponseFrame) -> None:
        if self.when == "mid-response":
            frame.data = frame.data[: max(1, len(frame.data) // 2)]
            frame.close = self.how
