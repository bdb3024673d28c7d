"""Who may ask the admin port: no page of another site, by whatever way, and nobody without the token."""

import json
from typing import Any

import pytest

from sluice.broker.admin.server import application
from tests.support.http import call
from tests.support.virtual_broker import VirtualBroker

CLUSTER, FAULTS = "/api/v1/cluster", "/api/v1/faults"
RULE = '{"action": "close"}'
TOKEN = "sluice.admin.token=secret"


def ask(
    path: str, method: str = "GET", body: str = "", override: str = "node.id=1", **headers: str
) -> tuple[int, dict[str, str], Any]:
    """Status, headers and answer of a broker; no rule was added unless it says so."""
    broker = VirtualBroker(override)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    status, answered, text = call(application(broker.cluster_server), path, method, body, **named)
    faults = broker.cluster_server.faults
    assert len(faults) == (status == 200 and method == "POST")
    return status, answered, json.loads(text)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:9644", "127.0.0.1:9644", "127.0.0.2", "[::1]:9644", "[::1]", ""]
)
def test_without_a_token_this_machine_is_answered(host: str) -> None:
    assert ask(CLUSTER, host=host)[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example:9644", "localhost.evil.example", "192.168.1.7:9644", "[::2]", "1", "a:b:c"]
)
def test_without_a_token_a_name_that_was_bent_to_lead_here_is_not(host: str) -> None:
    status, _, answer = ask(CLUSTER, host=host)
    assert status == 403
    assert answer["error"].startswith(f"host {host}: not a loopback name; use localhost")


def test_with_a_token_any_name_is_answered() -> None:
    assert ask(CLUSTER, override=TOKEN, host="sluice:9644", authorization="Bearer secret")[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:8000", "http://localhost:9644@evil"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_page_of_another_site_is_refused(origin: str, method: str) -> None:
    body = RULE if method == "POST" else ""
    status, answered, answer = ask(FAULTS, method, body, host="localhost:9644", origin=origin)
    assert (status, answer["error"]) == (
        403,
        f"origin {origin}: another site's page; expected the port's own origin, localhost:9644",
    )
    assert not [name for name in answered if name.startswith("access-control")]


def test_our_own_page_is_answered() -> None:
    assert ask(FAULTS, "POST", RULE, host="localhost:9644", origin="http://localhost:9644")[0] == 200


@pytest.mark.parametrize(
    ("method", "body", "headers", "status"),
    [
        pytest.param("POST", RULE, {"content_type": "text/plain"}, 415, id="a form as text"),
        pytest.param("POST", RULE, {"content_type": "application/x-www-form-urlencoded"}, 415, id="a form"),
        pytest.param("POST", RULE, {"content_type": "multipart/form-data; boundary=x"}, 415, id="a form of files"),
        pytest.param("POST", RULE, {"content_type": ""}, 415, id="a body of nobody knows what"),
        pytest.param("POST", RULE, {"content_type": "application/jsonp"}, 415, id="what only begins like JSON"),
        pytest.param("POST", RULE, {"content_type": "Application/JSON; charset=utf-8"}, 200, id="JSON"),
        pytest.param("DELETE", "", {"x_sluice_request": ""}, 403, id="no body and no header"),
        pytest.param("DELETE", "", {"x_sluice_request": "0"}, 403, id="another value of the header"),
        pytest.param("DELETE", "", {"x_sluice_request": "1"}, 200, id="the header"),
        pytest.param("DELETE", "", {"x_sluice_request": "", "content_type": "application/json"}, 200, id="as JSON"),
        pytest.param("GET", "", {"x_sluice_request": ""}, 200, id="who only reads needs none of it"),
    ],
)
def test_what_changes_something_is_sent_as_no_form_can(
    method: str, body: str, headers: dict[str, str], status: int
) -> None:
    own = {"x_sluice_request": ""} | headers if body else headers
    assert ask(FAULTS, method, body, **own)[0] == status


@pytest.mark.parametrize("path", [CLUSTER, "/metrics", "/api/openapi.json", "/nothing", "/healthz/", "/page"])
def test_without_the_token_nothing_is_told_not_even_what_there_is(path: str) -> None:
    status, answered, answer = ask(path, override=TOKEN, host="sluice:9644")
    assert (status, answered["www-authenticate"]) == (401, "Bearer")
    assert answer == {
        "error": "authorization: missing or wrong; send the value of sluice.admin.token as a bearer token"
    }
