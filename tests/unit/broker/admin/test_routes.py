"""Routes of the admin port: every operation has one, and unknown paths return JSON errors."""

import asyncio
import json

import pytest
from starlette.requests import Request
from starlette.responses import Response

from sluice.broker.admin.application import OPERATIONS, application
from sluice.broker.admin.routes import refusals
from sluice.broker.server.cluster_server import ClusterServer
from tests.support.http import call
from tests.support.virtual_broker import VirtualBroker

PATHS = sorted({one.path for one in OPERATIONS})
METHODS = {path: {one.method for one in OPERATIONS if one.path == path} for path in PATHS}


@pytest.mark.parametrize("path", PATHS)
def test_other_method_is_rejected_with_the_allowed_ones(path: str) -> None:
    app = application(VirtualBroker().cluster_server)
    status, headers, body = call(app, path.replace("{", "").replace("}", ""), "PATCH")
    assert status == 405
    assert headers["content-type"] == "application/json"
    served = METHODS[path] | ({"HEAD"} if "GET" in METHODS[path] else set())
    assert set(headers["allow"].split(", ")) == served
    assert json.loads(body)["error"].startswith("PATCH /")


@pytest.mark.parametrize("path", ["/nothing", "/api", "/api/v1/cluster/", "/api/v1/brokers/1", "//"])
def test_unknown_path_is_not_found(path: str) -> None:
    status, _, body = call(application(VirtualBroker().cluster_server), path)
    assert status == 404
    assert json.loads(body) == {"error": f"{path}: there is no such path; /api/openapi.json lists all paths"}


def test_head_is_served_for_get() -> None:
    assert call(application(VirtualBroker().cluster_server), "/healthz", "HEAD")[0] == 200


def test_internal_error_returns_500_and_is_raised_for_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(ClusterServer, "isolate_broker", fail)
    app = application(VirtualBroker().cluster_server)
    with pytest.raises(AssertionError):  # uvicorn logs it
        call(app, "/api/v1/brokers/1/isolate", "POST")

    async def respond() -> Response:
        return await refusals()[Exception](Request({"type": "http"}), AssertionError())

    response = asyncio.run(respond())
    assert (response.status_code, response.media_type) == (500, "application/json")
