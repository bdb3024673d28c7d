"""Changes of the installed aiokafka: each mends a defect that a search has found (history.py), or undoes its fix."""

import inspect
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.fetcher import Fetcher, PartitionRecords
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.producer.sender import BaseHandler, Sender


class Change(NamedTuple):
    """A change of a method.

    owner, method: what is changed
    before, after: its text in the installed version, and the other one
    """

    owner: type
    method: str
    before: str
    after: str


# By the names of the findings.
CHANGES = {
    "#781": [Change(PartitionRecords, "_unpack_records", "_aborted_producers.discard(", "_aborted_producers.remove(")],
    "#983": [
        Change(
            Fetcher,
            "_fetch_requests_routine",
            "contextlib.suppress(asyncio.CancelledError)",
            "contextlib.nullcontext()",
        )
    ],
    "#1134": [Change(BaseHandler, "do", "self.handle_error()", "self._default_backoff")],
    # A broker that is no longer the coordinator of the group is forgotten, also if it is that of the transaction.
    "#1151": [
        Change(
            AIOKafkaClient,
            "coordinator_lookup",
            "return resp.coordinator_id",
            """
    roles, self.known = vars(self).setdefault("roles", {}), vars(self).get("known", set())
    self.known.discard(roles.get(coordinator_type))
    roles[coordinator_type] = resp.coordinator_id
    self.known.add(resp.coordinator_id)
    return resp.coordinator_id
""",
        ),
        Change(
            AIOKafkaClient,
            "_get_conn",
            "self.cluster.broker_metadata(node_id)",
            "self.cluster.broker_metadata(node_id); assert group == ConnectionGroup.DEFAULT or node_id in self.known",
        ),
    ],
    "#796": [
        Change(
            GroupCoordinator,
            "_GroupCoordinator__coordination_routine",
            "assert assignment is not None and assignment.active",
            "if assignment is None or not assignment.active: continue",
        )
    ],
    "a failed lookup of offsets resets positions": [
        Change(
            GroupCoordinator,
            "_do_fetch_commit_offsets",
            "offsets = {}",
            """if response.error_code:
        if response.error_code == Errors.NotCoordinatorForGroupError.errno: self.coordinator_dead()
        raise Errors.for_code(response.error_code)()
    offsets = {}""",
        )
    ],
    "a member that joins again commits without its id": [
        Change(
            GroupCoordinator,
            "_do_commit_offsets",
            "request = OffsetCommitRequest(",
            """if self.generation < 0 and self._subscription.topics:
        raise Errors.CommitFailedError
    request = OffsetCommitRequest(""",
        )
    ],
    "a reset of positions does not look for the leader": [
        Change(
            Fetcher,
            "_update_fetch_positions",
            'log.error("Failed fetch offsets from %s: %s", node_id, err)',
            "self._client.force_metadata_update()",
        )
    ],
    "a lost lookup of a coordinator ends the producer": [
        Change(
            Sender,
            "_find_coordinator",
            "Errors.RequestTimedOutError,",
            "Errors.RequestTimedOutError, Errors.KafkaConnectionError,",
        )
    ],
    "send raises KeyError": [
        Change(
            AIOKafkaClient,
            "send",
            "self._conns[(node_id, group)].close(",
            "if (node_id, group) in self._conns: self._conns[(node_id, group)].close(",
        )
    ],
    "stop raises CancelledError": [
        Change(Fetcher, "close", "await x", "with contextlib.suppress(asyncio.CancelledError): await x")
    ],
}


@contextmanager
def applied(names: Iterable[str]) -> Iterator[None]:
    """Apply changes."""
    with ExitStack() as stack:
        for change in (change for name in names for change in CHANGES[name]):
            stack.enter_context(patch.object(change.owner, change.method, _changed(change)))
        yield


def _changed(change: Change) -> Callable[..., Any]:
    method = getattr(change.owner, change.method)
    source = textwrap.dedent(inspect.getsource(method))
    assert source.count(change.before) == 1, "aiokafka has changed"
    made: dict[str, Callable[..., Any]] = {}
    exec(source.replace(change.before, change.after), method.__globals__, made)
    return made[method.__name__]  # a private one has no prefix there
