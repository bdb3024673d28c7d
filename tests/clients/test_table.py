"""docs/clients.md has all scenarios and clients, and no result that the tests do not have."""

from tests.clients.clients import CLIENTS
from tests.clients.driver import InProcess
from tests.clients.scenarios import SCENARIOS
from tools.docs.results import client_matrix

STALE = "docs/clients.md is out of date: run `tools/campaign run client-matrix`"


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def test_page_has_every_client_and_scenario() -> None:
    matrix, _, streams = client_matrix.PAGE.read_text().partition(client_matrix.STREAMS_HEAD)
    heads, _, *body = [cells(line) for line in matrix.splitlines() if line.startswith("|")]
    assert [head.partition("<br>")[0] for head in heads] == ["", *(client.name for client in CLIENTS)], STALE
    everything = {(client.name, name): "ok" for client in CLIENTS for name in SCENARIOS}
    assert body == client_matrix.rows(everything), STALE
    _, _, *lines = [cells(line) for line in streams.splitlines() if line.startswith("|")]
    assert lines == [[title, "ok"] for title in client_matrix.STREAMS_SCENARIOS.values()], STALE


def test_readme_table_has_every_client_and_area() -> None:
    everything = {(client.name, name): "ok" for client in CLIENTS for name in SCENARIOS}
    text = client_matrix.README.read_text()
    assert client_matrix.with_short_table(text, everything) == text, STALE


def test_page_has_the_installed_versions_and_every_reason() -> None:
    text = client_matrix.PAGE.read_text()
    here = [client for client in CLIENTS if isinstance(client, InProcess)]
    assert [client.name for client in here if f"{client.name}<br>{client.version()} " not in text] == [], STALE
    assert [reason for reason in client_matrix.reasons() if f" The client {reason}.\n" not in text] == [], STALE
