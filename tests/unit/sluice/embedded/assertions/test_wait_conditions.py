"""What a timed-out wait for events reports."""

from sluice.embedded.assertions.wait_conditions import Filters, wait_condition
from sluice.journal_events import Request
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.virtual_broker import VirtualBroker


def test_timed_out_wait_for_events_reports_counts_and_other_events() -> None:
    broker = VirtualBroker("sluice.journal.events=100")
    wait = wait_condition(
        lambda: broker.journal, Request, lambda each: each.version != 8, 3, Filters(0, "b", "Metadata", ())
    )
    client = broker.client("a")
    for version in (9, 8):
        client.call(MetadataRequest(), version)
    client.end()
    assert wait.poll() is None
    assert wait.describe_timeout(0.5) == (
        "after 0.5 s: 0 of 3 Request with client_id=b, api=Metadata, and 0 for which `where` is false; "
        "4 journal events during the wait; last events:\n"
        "  22:13:20.000000 broker 1 #1 127.0.0.1:40001 connected from 127.0.0.1:40001 to PLAINTEXT\n"
        "  22:13:20.000000 broker 1 #1 a Metadata v9 (1), 0.000 ms\n"
        "  22:13:20.000000 broker 1 #1 a Metadata v8 (2), 0.000 ms\n"
        "  22:13:20.000000 broker 1 #1 a closed by the client\n"
        "the closest event: 22:13:20.000000 broker 1 #1 a Metadata v8 (2), 0.000 ms\n"
        "  client_id is 'a', expected 'b'"
    )
