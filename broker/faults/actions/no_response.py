"""`black-hole` and `close`: requests that are never answered."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from sluice.broker.faults.requests.fault_execution import NEVER_MS, Course
from sluice.broker.requests.context import Outcome
from sluice.protocol.message import Message

from .action import Hit, RequestAction
from .response_frame import Outgoing


class BlackHole(RequestAction, frozen=True, tag="black-hole"):
    """Never answers. The connection stays open, and nothing that comes on it afterwards is looked at either: Kafka
    answers in order. Should the rule be removed, it goes on where it was.
    """

    SUMMARY: ClassVar[str] = "Never answers; the connection stays open."

    when: Annotated[
        Literal["before", "after"], Meta(description="before: it is not handled either; after: it is, unseen")
    ] = "before"

    def before(self, course: Course, hit: Hit) -> Message | Outcome | None:
        return course.wait_before(hit, NEVER_MS) if self.when == "before" else None

    def after(self, course: Course, hit: Hit, outcome: Message | Outcome) -> Message | Outcome:
        return course.wait_after(hit, NEVER_MS, outcome) if self.when == "after" else outcome


class Close(RequestAction, frozen=True, tag="close"):
    """Closes the connection instead of answering."""

    SUMMARY: ClassVar[str] = "Closes the connection, instead of answering or in the middle of the answer."

    when: Annotated[
        Literal["before", "after", "mid-response"],
        Meta(description="before or after it is handled, or when half of the answer was sent"),
    ] = "before"
    how: Annotated[Literal["fin", "rst"], Meta(description="orderly, or by a reset (RST)")] = "fin"

    def before(self, course: Course, hit: Hit) -> Message | Outcome | None:
        return course.close(hit, self.how) if self.when == "before" else None

    def after(self, course: Course, hit: Hit, outcome: Message | Outcome) -> Message | Outcome:
        return course.close(hit, self.how) if self.when == "after" else outcome

    def leaving(self, course: Course, hit: Hit, outgoing: Outgoing) -> None:
        if self.when == "mid-response":
            outgoing.frame = outgoing.frame[: max(1, len(outgoing.frame) // 2)]
            outgoing.close = self.how
