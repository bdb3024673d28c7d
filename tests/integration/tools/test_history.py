"""What searches have found in aiokafka: each failure is due to a few words of its source.

A defect that is mended in the installed version is repeated without its fix, and one that is not mended is not repeated
with a fix. `tools/campaign run explore-history --repeat` repeats them in the versions themselves.
"""

import inspect
import json
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import aiokafka
import pytest
from aiokafka.client import AIOKafkaClient
from aiokafka.consumer.fetcher import Fetcher, PartitionRecords
from aiokafka.producer.sender import BaseHandler

from tests.support.fixed_hashes import start
from tools.explore.history import FINDINGS


class Change(NamedTuple):
    """A change of a method.

    owner, method: what is changed
    before, after: its text in the installed version, and the other one
    """

    owner: type
    method: str
    before: str
    after: str


CHANGES = {
    "#781": Change(PartitionRecords, "_unpack_records", "_aborted_producers.discard(", "_aborted_producers.remove("),
    "#983": Change(
        Fetcher,
        "_fetch_requests_routine",
        "contextlib.suppress(asyncio.CancelledError)",
        "contextlib.nullcontext()",
    ),
    "#1134": Change(BaseHandler, "do", "self.handle_error()", "self._default_backoff"),
    "a reset of positions does not look for the leader": Change(
        Fetcher,
        "_update_fetch_positions",
        'log.error("Failed fetch offsets from %s: %s", node_id, err)',
        "self._client.force_metadata_update()",
    ),
    "send raises KeyError": Change(
        AIOKafkaClient,
        "send",
        "self._conns[(node_id, group)].close(",
        "if (node_id, group) in self._conns: self._conns[(node_id, group)].close(",
    ),
    "stop raises CancelledError": Change(
        Fetcher, "close", "await x", "with contextlib.suppress(asyncio.CancelledError): await x"
    ),
}


def changed(change: Change) -> Callable[..., Any]:
    method = getattr(change.owner, change.method)
    source = textwrap.dedent(inspect.getsource(method))
    assert source.count(change.before) == 1, "aiokafka has changed"
    made: dict[str, Any] = {}
    exec(source.replace(change.before, change.after), method.__globals__, made)
    return made[change.method]  # type: ignore[no-any-return]


def errors(is_changed: int) -> str:
    """Return how each finding ends as JSON, in the installed version or with the changes."""
    found: dict[str, str] = {}
    for name, finding in FINDINGS.items():
        with pytest.MonkeyPatch.context() as patch:
            if is_changed:
                owner, method, *_ = CHANGES[name]
                patch.setattr(owner, method, changed(CHANGES[name]))
            outcome = finding.outcome()
        found[name] = outcome.error if is_changed or not outcome.missed else f"missed: {outcome.missed}"
    return json.dumps(found)


def test_each_finding_has_its_cause() -> None:
    assert CHANGES.keys() == FINDINGS.keys()


@pytest.mark.parametrize("is_changed", [0, 1], ids=["as it is", "with the changes"])
def test_findings_in_the_installed_version(is_changed: int) -> None:
    expected = {name: "" if bool(each.mended) != is_changed else each.error for name, each in FINDINGS.items()}
    assert json.loads(start(__name__, f"errors({is_changed})").communicate()[0]) == expected


def test_findings_that_are_not_mended_are_those_of_the_installed_version() -> None:
    assert {each.version for each in FINDINGS.values() if not each.mended} == {aiokafka.__version__}
