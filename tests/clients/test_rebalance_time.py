"""The duration of a rebalance in real time with clients that respond at once, so that it measures the broker."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from time import monotonic

import pytest

from sluice.protocol.apis.join_group import JoinGroupRequest
from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from sluice.protocol.errors import ErrorCode
from tests.support.broker_process import overrides, running_broker
from tests.support.groups import protocol
from tests.support.wire import WireClient

MEMBERS = 3
ATTEMPTS = 5  # the fastest counts: slower ones measure the load of the machine
# All members join within this time and the same time again: a member of an earlier generation would not notice them.
INITIAL_DELAY_MS = 300
# From the leave to the last assignment. Kafka's clients add up to a heartbeat interval, until they notice it.
PROMISED_S = 0.150


class Member:
    """A member that responds at once."""

    def __init__(self, wire: WireClient) -> None:
        self.wire = wire
        self.member_id = ""
        refusal = wire.ask(self.join_request(), 9)
        assert refusal.error_code == ErrorCode.MEMBER_ID_REQUIRED
        self.member_id = refusal.member_id

    def join_request(self) -> JoinGroupRequest:
        return JoinGroupRequest(
            group_id="group",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[protocol()],
        )

    def rejoin(self) -> float:
        """Rejoin until it is in a stable generation, and sync; return the time of the assignment."""
        while True:
            joined = self.wire.ask(self.join_request(), 9)
            assert joined.error_code == 0
            parts = [SyncGroupRequestAssignment(member_id=one.member_id, assignment=b"x") for one in joined.members]
            request = SyncGroupRequest(
                group_id="group",
                generation_id=joined.generation_id,
                member_id=self.member_id,
                protocol_type="consumer",
                protocol_name="range",
                assignments=parts,
            )
            error = self.wire.ask(request, 5).error_code
            if error == 0:
                return monotonic()
            assert error == ErrorCode.REBALANCE_IN_PROGRESS  # another member joined in between

    def leave(self) -> None:
        request = LeaveGroupRequest(group_id="group", members=[MemberIdentity(member_id=self.member_id)])
        assert self.wire.ask(request, 5).members[0].error_code == 0


def rebalance_s(bootstrap: str) -> float:
    """Return the seconds from a member's leave to the last assignment of the remaining members."""
    with ExitStack() as stack, ThreadPoolExecutor(MEMBERS) as pool:
        members = [Member(stack.enter_context(WireClient(bootstrap))) for _ in range(MEMBERS)]
        list(pool.map(Member.rejoin, members))
        begun = monotonic()
        members[0].leave()
        took_s = max(pool.map(Member.rejoin, members[1:])) - begun
        for member in members[1:]:
            member.leave()
    return took_s


@pytest.mark.realtime
def test_group_rebalances_within_150_ms_after_a_member_leaves(tmp_path: Path) -> None:
    with running_broker(tmp_path / "log", *overrides(f"group.initial.rebalance.delay.ms={INITIAL_DELAY_MS}")) as broker:
        fastest_s = min(rebalance_s(broker.bootstrap) for _ in range(ATTEMPTS))
    assert fastest_s < PROMISED_S
