"""docs/openapi.json, the document that a broker with the web page serves."""

import json
from pathlib import Path

from sluice.broker.admin.application import application
from sluice.text.json_text import text_of
from sluice.web import load
from tests.support.http import call
from tests.support.virtual_broker import VirtualBroker

FILE = Path(__file__).parents[3] / "docs/openapi.json"


def document_text() -> str:
    """Return the text of the file."""
    return text_of(json.loads(call(application(VirtualBroker().cluster_server, load()), "/api/openapi.json")[2]))
