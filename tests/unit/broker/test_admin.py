"""The admin port's HTTP application: metrics, health, and the token that guards them."""

import asyncio
import json
from typing import Any

import pytest
from starlette.applications import Starlette

from sluice.broker.admin import application
from sluice.metrics import METRICS
from tests.support.virtual_broker import VirtualBroker

TOKEN = "sluice.admin.token=a secret"


def get(app: Starlette, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and body of one answer. Starlette's own test client needs a library more."""
    sent: list[dict[str, Any]] = []  # an ASGI message is a dict of whatever

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": b"",
        "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
    }
    asyncio.run(app(scope, receive, send))
    start, *rest = sent
    answered = {key.decode(): value.decode() for key, value in start["headers"]}
    return start["status"], answered, b"".join(part.get("body", b"") for part in rest).decode()


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        pytest.param("", "text/plain", id="no preference"),
        pytest.param("application/openmetrics-text; version=1.0.0", "application/openmetrics-text", id="OpenMetrics"),
    ],
)
def test_metrics_come_in_the_format_that_was_asked_for(accept: str, content_type: str) -> None:
    status, headers, body = get(application(VirtualBroker().cluster_server), "/metrics", accept=accept)
    assert status == 200
    assert headers["content-type"].startswith(content_type)
    assert [name for name in METRICS if f"# HELP {name.removesuffix('_total')}" not in body] == []


def test_a_scrape_reads_the_broker_as_it_is_now() -> None:
    broker = VirtualBroker()
    app = application(broker.cluster_server)
    assert "\nsluice_connections 0.0\n" in get(app, "/metrics")[2]
    broker.client()
    assert "\nsluice_connections 1.0\n" in get(app, "/metrics")[2]


def test_health_is_ok() -> None:
    status, _, body = get(application(VirtualBroker().cluster_server), "/healthz")
    assert (status, json.loads(body)) == (200, {"status": "ok"})


def test_what_is_not_there_is_404() -> None:
    assert get(application(VirtualBroker().cluster_server), "/nothing")[0] == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({}, 401, id="no token"),
        pytest.param({"authorization": "Bearer a secre"}, 401, id="another token"),
        pytest.param({"authorization": "a secret"}, 401, id="the token alone"),
        pytest.param({"authorization": "Basic a secret"}, 401, id="another scheme"),
        pytest.param({"authorization": "Bearer ä"}, 401, id="letters beyond ASCII"),
        pytest.param({"authorization": "Bearer a secret"}, 200, id="the token"),
    ],
)
def test_a_token_guards_metrics(headers: dict[str, str], status: int) -> None:
    answered, answer_headers, body = get(application(VirtualBroker(TOKEN).cluster_server), "/metrics", **headers)
    assert answered == status
    assert ("sluice_build_info" in body) == (status == 200), "nothing is told without the token"
    assert (answer_headers.get("www-authenticate") == "Bearer") == (status == 401)


def test_health_needs_no_token() -> None:
    # An orchestrator's probe has none, and the answer tells nothing.
    assert get(application(VirtualBroker(TOKEN).cluster_server), "/healthz")[0] == 200
