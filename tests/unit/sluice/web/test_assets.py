"""The page's files, and the policy on what they may load."""

import re

import pytest

from sluice.web.routes import CONTENT_SECURITY_POLICY, INDEX, assets

FILES = assets()
TEXTS = {name: asset.content.decode() for name, asset in FILES.items()}
SCRIPTS = [name for name in FILES if name.endswith(".js")]


def test_the_policy_allows_only_the_files_of_the_port() -> None:
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
def test_no_file_refers_to_another_host(name: str) -> None:
    addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+", re.sub(r"//.*$", "", TEXTS[name], flags=re.MULTILINE))
    assert [each for each in addresses if "www.w3.org" not in each] == [], "the page must work offline"


def test_the_page_has_no_inline_script_or_style() -> None:
    page = TEXTS[INDEX]
    assert re.findall(r"<script(?![^>]*\bsrc=)", page) == []
    assert re.findall(r"\sstyle=|<style|\son\w+=", page) == []


def test_the_page_requests_only_existing_files() -> None:
    requested = set(re.findall(r'(?:src|href)="/page/([^"]+)"', TEXTS[INDEX]))
    for script in SCRIPTS:
        requested |= set(re.findall(r'from "\./([^"]+)"', TEXTS[script]))
    assert requested <= FILES.keys()
    assert [name for name in SCRIPTS if name not in requested] == [], "unused scripts"


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_turns_text_into_html(name: str) -> None:
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc"
    assert re.findall(sinks, TEXTS[name]) == []


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name != "api.js"])
def test_all_requests_are_sent_with_the_token(name: str) -> None:
    assert re.findall(r"\bfetch\(|XMLHttpRequest|EventSource\(|sendBeacon|WebSocket", TEXTS[name]) == []
