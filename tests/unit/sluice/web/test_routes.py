"""The routes of the page."""

import json

import pytest

from sluice.broker.admin.application import application
from sluice.web import load
from tests.support.http import call
from tests.support.virtual_broker import VirtualBroker

TOKEN = "sluice.admin.token=a secret"


def test_the_page_and_its_files_are_served() -> None:
    app = application(VirtualBroker().cluster_server, load())
    status, headers, body = call(app, "/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'none'" in headers["content-security-policy"]
    assert '<script type="module" src="/page/main.js">' in body
    assert call(app, "/page/main.js")[1]["content-type"] == "text/javascript; charset=utf-8"


@pytest.mark.parametrize("name", ["nothing.js", "..%2fassets.py", "%2e%2e/assets.py"])
def test_other_files_are_not_served(name: str) -> None:
    assert call(application(VirtualBroker().cluster_server, load()), f"/page/{name}")[0] == 404


def test_an_unchanged_file_is_not_sent_again() -> None:
    app = application(VirtualBroker().cluster_server, load())
    etag = call(app, "/page/main.js")[1]["etag"]
    headers = {"if-none-match": etag}
    assert (call(app, "/page/main.js", **headers)[0], call(app, "/page/main.js", **headers)[2]) == (304, "")


def test_a_broker_without_the_page_returns_404() -> None:
    assert call(application(VirtualBroker().cluster_server), "/")[0] == 404


def test_the_page_needs_no_token_but_its_data_does() -> None:
    app = application(VirtualBroker(TOKEN).cluster_server, load())
    assert call(app, "/")[0] == 200
    assert call(app, "/api/v1/stream")[0] == 401
    assert call(app, "/api/v1/stream", authorization="Bearer another")[0] == 401


def test_an_invalid_view_is_rejected() -> None:
    app = application(VirtualBroker().cluster_server, load())
    status, _, body = call(app, "/api/v1/stream", query="sort=size")
    error = "sort: expected one of activity, name, quota, throttled, got size"
    assert (status, json.loads(body)) == (400, {"error": error})
