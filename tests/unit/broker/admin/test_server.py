"""The HTTP application of the admin port: metrics, health, and the token."""

import json

import pytest

from sluice.broker.admin.application import application
from tests.support.http import call
from tests.support.virtual_broker import VirtualBroker
from tests.unit.broker.server.test_metrics import OF_BROKER

TOKEN = "sluice.admin.token=a secret"


METRICS_FORMATS = {
    "no preference": ("", "text/plain"),
    "OpenMetrics": ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text"),
}


@pytest.mark.parametrize(("accept", "content_type"), METRICS_FORMATS.values(), ids=METRICS_FORMATS)
def test_metrics_have_the_accepted_format(accept: str, content_type: str) -> None:
    status, headers, body = call(application(VirtualBroker().cluster_server), "/metrics", accept=accept)
    assert status == 200
    assert headers["content-type"].startswith(content_type)
    assert [name for name in OF_BROKER if f"# HELP {name.removesuffix('_total')}" not in body] == []


def test_scrape_returns_current_values(broker: VirtualBroker) -> None:
    app = application(broker.cluster_server)
    assert "\nsluice_connections 0.0\n" in call(app, "/metrics")[2]
    broker.client()
    assert "\nsluice_connections 1.0\n" in call(app, "/metrics")[2]


def test_health_is_ok() -> None:
    status, _, body = call(application(VirtualBroker().cluster_server), "/healthz")
    assert (status, json.loads(body)) == (200, {"status": "ok"})


METRICS_TOKENS = {
    "no token": ({}, 401),
    "wrong token": ({"authorization": "Bearer a secre"}, 401),
    "token without a scheme": ({"authorization": "a secret"}, 401),
    "wrong scheme": ({"authorization": "Basic a secret"}, 401),
    "non-ASCII token": ({"authorization": "Bearer ä"}, 401),
    "token": ({"authorization": "Bearer a secret"}, 200),
}


@pytest.mark.parametrize(("headers", "status"), METRICS_TOKENS.values(), ids=METRICS_TOKENS)
def test_metrics_require_the_token(headers: dict[str, str], status: int) -> None:
    actual_status, response_headers, body = call(
        application(VirtualBroker(TOKEN).cluster_server), "/metrics", **headers
    )
    assert actual_status == status
    assert ("sluice_build_info" in body) == (status == 200), "metrics need the token"
    assert (response_headers.get("www-authenticate") == "Bearer") == (status == 401)


def test_health_needs_no_token() -> None:
    # An orchestrator's probe has no token, and the response reveals nothing.
    assert call(application(VirtualBroker(TOKEN).cluster_server), "/healthz")[0] == 200
