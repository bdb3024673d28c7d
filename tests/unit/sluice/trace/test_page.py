"""The page of a trace as a file: its size, its policy, and that it holds nothing but itself and the trace."""

import gzip
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from sluice import trace as package
from sluice.trace.model import Trace
from sluice.trace.page import render
from tests.support import trace_models

STATIC = Path(package.__file__).parent / "static"
SCRIPTS = sorted(STATIC.glob("*.js"))
PAGE = render(trace_models.trace(50))


def _inside(tag: str) -> str:
    found = re.findall(rf"<{tag}>(.*?)</{tag.split()[0]}>", PAGE, re.DOTALL)
    assert len(found) == 1
    return str(found[0])


def test_the_static_part_is_small() -> None:
    assert sum(file.stat().st_size for file in STATIC.iterdir()) < 120_000


def test_a_trace_of_16384_requests_is_at_most_a_megabyte_and_a_half() -> None:
    assert len(render(trace_models.trace(16_384, clients=12)).encode()) < 1_500_000


def test_the_page_has_the_trace() -> None:
    shown = trace_models.trace(50)
    data = re.findall(r'<script type="application/gzip" id="trace">(.*?)</script>', PAGE)
    assert msgspec.json.decode(gzip.decompress(b64decode(data[0])), type=Trace) == shown


def test_the_same_trace_gives_the_same_page() -> None:
    assert render(trace_models.trace(50)) == PAGE


@pytest.mark.parametrize(("tag", "directive"), [('script type="module"', "script-src"), ("style", "style-src")])
def test_the_policy_allows_only_this_script_and_these_styles(tag: str, directive: str) -> None:
    digest = b64encode(sha256(_inside(tag).encode()).digest()).decode()
    policy = dict(each.split(" ", 1) for each in re.findall(r'Policy" content="([^"]*)"', PAGE)[0].split("; "))
    assert policy[directive] == f"'sha256-{digest}'"
    assert policy["default-src"] == "'none'"
    assert "connect-src" not in policy


def test_every_import_and_export_became_part_of_the_script() -> None:
    assert re.findall(r"^\s*(?:import|export)\b.*", _inside('script type="module"'), re.MULTILINE) == []


def test_every_script_is_used() -> None:
    script = _inside('script type="module"')
    assert [file.stem for file in SCRIPTS if f"const ${file.stem} = " not in script] == []


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_no_script_sends_a_request_or_turns_text_into_html(file: Path) -> None:
    requests = r"\bfetch\(|XMLHttpRequest|EventSource|sendBeacon|WebSocket"
    html = r"innerHTML|outerHTML|insertAdjacentHTML|\beval\(|</script"
    assert re.findall(rf"{requests}|{html}|console\.", file.read_text()) == []


def test_a_title_is_text() -> None:
    shown = trace_models.trace(50, title="</title><script>alert(1)</script>")
    assert "<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;</title>" in render(shown)
