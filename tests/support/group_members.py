"""Members of consumer, share and Streams groups: joining, and reaching the target assignment."""

from typing import Any, Protocol, TypeVar


class Member(Protocol):
    """A member of any of these groups."""

    def join(self, **fields: Any) -> Any: ...
    def heartbeat(self, **fields: Any) -> Any: ...


M = TypeVar("M", bound=Member)


def joined(member: M, **fields: Any) -> M:
    response = member.join(**fields)
    assert not response.error_code, response
    return member


def converge(*members: Member, rounds: int = 6) -> None:
    """Let all members send heartbeats in turn until each has its target assignment."""
    for _ in range(rounds):
        for member in members:
            response = member.heartbeat()
            assert not response.error_code, response


def settled(*members: M) -> tuple[M, ...]:
    for member in members:
        joined(member)
    converge(*members)
    return members
