"""The page's files: what they may load, and that nothing in them would need more than that."""

import re

import pytest

from sluice.web.assets import CONTENT_SECURITY_POLICY, INDEX, assets

FILES = assets()
TEXTS = {name: asset.content.decode() for name, asset in FILES.items()}
SCRIPTS = [name for name in FILES if name.endswith(".js")]


def test_nothing_is_allowed_but_what_the_port_serves() -> None:
    policy = dict(each.split(" ", 1) for each in CONTENT_SECURITY_POLICY.split("; "))
    assert policy.pop("default-src") == "'none'"
    assert {value for name, value in policy.items() if name.endswith("-src")} == {"'self'"}
    assert "unsafe" not in CONTENT_SECURITY_POLICY


@pytest.mark.parametrize("name", FILES)
def test_every_file_has_the_policy_and_its_type(name: str) -> None:
    headers = FILES[name].headers
    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-type"].split("/")[0] in ("text", "image")


@pytest.mark.parametrize("name", FILES)
def test_nothing_comes_from_elsewhere(name: str) -> None:
    addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+", re.sub(r"//.*$", "", TEXTS[name], flags=re.MULTILINE))
    assert [each for each in addresses if "www.w3.org" not in each] == [], "it is to work without a network"


def test_the_page_has_no_inline_script_or_style() -> None:
    page = TEXTS[INDEX]
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"\sstyle=|<style|\son\w+=", page) == []


def test_the_page_asks_for_files_that_are_there() -> None:
    asked = set(re.findall(r'(?:src|href)="/page/([^"]+)"', TEXTS[INDEX]))
    for script in SCRIPTS:
        asked |= set(re.findall(r'from "\./([^"]+)"', TEXTS[script]))
    assert asked <= FILES.keys()
    assert [name for name in SCRIPTS if name not in asked] == [], "a script that nothing loads"


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_html_of_text(name: str) -> None:
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc"
    assert re.findall(sinks, TEXTS[name]) == []


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name != "api.js"])
def test_all_requests_go_by_the_one_that_has_the_token(name: str) -> None:
    assert re.findall(r"\bfetch\(|XMLHttpRequest|EventSource\(|sendBeacon|WebSocket", TEXTS[name]) == []
