"""Journals of running brokers as sources: the admin port, and the topic."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice.cli.journal import sources
from sluice.cli.journal.sources import read_events
from sluice.errors import SluiceError
from sluice.journal_events import Event, Request
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.broker_process import BrokerProcess, overrides, running_broker
from tests.support.ports import refusing_address
from tests.support.wire import WireClient


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    log: Path = tmp_path_factory.mktemp("sources") / "log"
    with running_broker(log, *overrides("sluice.journal.topic=true", "sluice.journal.events=16384")) as running:
        with WireClient(running.bootstrap, "shop") as client:
            for _ in range(5):
                client.call(MetadataRequest(), 9)
        yield running


def requests_of_shop(source: str) -> list[str]:
    events = [event for batch in read_events(source) for event in batch]
    assert [event.seq for event in events] == sorted(event.seq for event in events)
    assert all(isinstance(event, Event) for event in events)
    return [event.api for event in events if isinstance(event, Request) and event.client_id == "shop"]


def test_the_admin_port_and_the_topic_have_all_events(broker: BrokerProcess) -> None:
    assert requests_of_shop(broker.admin) == ["Metadata"] * 5
    assert requests_of_shop(f"kafka://{broker.bootstrap}") == ["Metadata"] * 5
    assert requests_of_shop(f"kafka://{broker.bootstrap}/__sluice_journal") == ["Metadata"] * 5


def test_a_topic_that_does_not_exist_is_one_line(broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_TIMEOUT_MS", 200)
    with refusing_address() as refusing:
        for address in (broker.bootstrap, refusing):
            with pytest.raises(SluiceError, match=f"^kafka://{address}/none: topic none was not known in time$"):
                list(read_events(f"kafka://{address}/none"))
