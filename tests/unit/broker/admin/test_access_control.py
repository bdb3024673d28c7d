"""Access control of the admin port: no cross-site requests, and no access without the token."""

import json
from typing import Any

import pytest

from sluice.broker.admin.application import application
from tests.support.http import call
from tests.support.virtual_broker import VirtualBroker

CLUSTER, FAULTS = "/api/v1/cluster", "/api/v1/faults"
RULE = '{"action": "close"}'
TOKEN = "sluice.admin.token=secret"


def send(
    path: str, method: str = "GET", body: str = "", override: str = "node.id=1", **headers: str
) -> tuple[int, dict[str, str], Any]:
    """Return status, headers and JSON of a response; only a successful POST may add a rule."""
    broker = VirtualBroker(override)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    status, response_headers, text = call(application(broker.cluster_server), path, method, body, **named)
    faults = broker.cluster_server.faults
    assert len(faults) == (status == 200 and method == "POST")
    return status, response_headers, json.loads(text)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:9644", "127.0.0.1:9644", "127.0.0.2", "[::1]:9644", "[::1]", ""]
)
def test_loopback_names_need_no_token(host: str) -> None:
    assert send(CLUSTER, host=host)[0] == 200


@pytest.mark.parametrize(
    "host", ["evil.example:9644", "localhost.evil.example", "192.168.1.7:9644", "[::2]", "1", "a:b:c"]
)
def test_other_host_names_are_rejected_without_a_token(host: str) -> None:
    status, _, response = send(CLUSTER, host=host)
    assert status == 403
    assert response["error"].startswith(f"host {host}: not a loopback name; use localhost")


def test_any_host_name_is_accepted_with_the_token() -> None:
    assert send(CLUSTER, override=TOKEN, host="sluice:9644", authorization="Bearer secret")[0] == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://localhost:8000", "http://localhost:9644@evil", "http://["]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_page_of_another_site_is_rejected(origin: str, method: str) -> None:
    body = RULE if method == "POST" else ""
    status, response_headers, response = send(FAULTS, method, body, host="localhost:9644", origin=origin)
    assert (status, response["error"]) == (
        403,
        f"origin {origin}: another site's page; expected the port's own origin, localhost:9644",
    )
    assert not [name for name in response_headers if name.startswith("access-control")]


def test_own_page_is_accepted() -> None:
    assert send(FAULTS, "POST", RULE, host="localhost:9644", origin="http://localhost:9644")[0] == 200


CHANGES = {
    "form as text": ("POST", RULE, {"content_type": "text/plain"}, 415),
    "form": ("POST", RULE, {"content_type": "application/x-www-form-urlencoded"}, 415),
    "form with files": ("POST", RULE, {"content_type": "multipart/form-data; boundary=x"}, 415),
    "no content type": ("POST", RULE, {"content_type": ""}, 415),
    "content type that only starts like JSON": ("POST", RULE, {"content_type": "application/jsonp"}, 415),
    "JSON": ("POST", RULE, {"content_type": "Application/JSON; charset=utf-8"}, 200),
    "neither body nor header": ("DELETE", "", {"x_sluice_request": ""}, 403),
    "wrong header value": ("DELETE", "", {"x_sluice_request": "0"}, 403),
    "header": ("DELETE", "", {"x_sluice_request": "1"}, 200),
    "JSON content type without a body": (
        "DELETE",
        "",
        {"x_sluice_request": "", "content_type": "application/json"},
        200,
    ),
    "reads need no header": ("GET", "", {"x_sluice_request": ""}, 200),
}


@pytest.mark.parametrize(("method", "body", "headers", "status"), CHANGES.values(), ids=CHANGES)
def test_changes_require_json_or_the_request_header(
    method: str, body: str, headers: dict[str, str], status: int
) -> None:
    own = {"x_sluice_request": ""} | headers if body else headers
    assert send(FAULTS, method, body, **own)[0] == status


@pytest.mark.parametrize("path", [CLUSTER, "/metrics", "/api/openapi.json", "/nothing", "/healthz/", "/page"])
def test_missing_token_reveals_no_paths(path: str) -> None:
    status, response_headers, response = send(path, override=TOKEN, host="sluice:9644")
    assert (status, response_headers["www-authenticate"]) == (401, "Bearer")
    assert response == {
        "error": "authorization: missing or wrong; send the value of sluice.admin.token as a bearer token"
    }
