"""What searches have found in aiokafka: each failure is due to a few words of its source.

A defect that is mended in the installed version is repeated without its fix, and one that is not mended is not repeated
with a fix. `tools/campaign run explore-history --repeat` repeats them in the versions themselves.
"""

import inspect
import textwrap
from collections.abc import Callable
from typing import Any, NamedTuple

import aiokafka
import pytest
from aiokafka.consumer.fetcher import Fetcher, PartitionRecords
from aiokafka.producer.sender import BaseHandler

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
    "stop raises CancelledError": Change(
        Fetcher, "close", "await x", "with contextlib.suppress(asyncio.CancelledError): await x"
    ),
}

each_finding = pytest.mark.parametrize("name", FINDINGS)


def changed(change: Change) -> Callable[..., Any]:
    method = getattr(change.owner, change.method)
    source = textwrap.dedent(inspect.getsource(method))
    assert source.count(change.before) == 1, "aiokafka has changed"
    made: dict[str, Any] = {}
    exec(source.replace(change.before, change.after), method.__globals__, made)
    return made[change.method]  # type: ignore[no-any-return]


def test_each_finding_has_its_cause() -> None:
    assert CHANGES.keys() == FINDINGS.keys()


@each_finding
def test_finding_is_repeated_in_the_versions_that_have_the_defect(name: str) -> None:
    finding = FINDINGS[name]
    outcome = finding.outcome()
    assert outcome.error == ("" if finding.mended else finding.error)
    assert not outcome.missed


@each_finding
def test_finding_is_due_to_a_few_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    finding, change = FINDINGS[name], CHANGES[name]
    monkeypatch.setattr(change.owner, change.method, changed(change))
    assert finding.outcome().error == (finding.error if finding.mended else "")


def test_findings_that_are_not_mended_are_those_of_the_installed_version() -> None:
    assert {each.version for each in FINDINGS.values() if not each.mended} == {aiokafka.__version__}
