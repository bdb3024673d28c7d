"""`black-hole` and `close`: requests without a response."""

from typing import Annotated, Literal

from msgspec import Meta

from sluice.broker.faults.requests.fault_execution import (
    NEVER_MS,
    FaultExecution,
    Reply,
    RequestAction,
    ResponseFrame,
    RuleHit,
)


class BlackHole(RequestAction, frozen=True, tag="black-hole"):
    """Never responds; the connection stays open. If the rule is removed, the request continues."""

    when: Annotated[
        Literal["before", "after"], Meta(description="before: the request is not handled either; after: it is handled")
    ] = "before"

    def before(self, intercepted: FaultExecution, hit: RuleHit) -> Reply | None:
        if self.when != "before":
            return None
        wait = intercepted.wait_before(hit.fault, NEVER_MS)
        wait.is_unanswered = True
        return wait

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        if self.when != "after":
            return reply
        wait = intercepted.wait_after(hit.fault, NEVER_MS, reply)
        wait.is_unanswered = True
        return wait


class Close(RequestAction, frozen=True, tag="close"):
    """Closes the connection instead of, or in the middle of, the response."""

    when: Annotated[
        Literal["before", "after", "mid-response"],
        Meta(description="before or after the request is handled, or after half of the response was sent"),
    ] = "before"
    how: Annotated[Literal["fin", "rst"], Meta(description="orderly (FIN), or by a reset (RST)")] = "fin"

    def before(self, intercepted: FaultExecution, hit: RuleHit) -> Reply | None:
        return intercepted.close(hit.fault, self.how) if self.when == "before" else None

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        return intercepted.close(hit.fault, self.how) if self.when == "after" else reply

    def leaving(self, intercepted: FaultExecution, hit: RuleHit, frame: ResponseFrame) -> None:
        if self.when == "mid-response":
            frame.data = frame.data[: max(1, len(frame.data) // 2)]
            frame.close = self.how
