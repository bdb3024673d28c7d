"""The HTML page: self-contained, with every verdict, and safe against text chosen by clients."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from sluice.audit.judge.model.verdict import State
from sluice.audit.report.page import page
from tests.support.audit_results import HOSTILE, TEXTS, result, subject, verdict, with_everything

_VOID = {"meta", "input", "br"}
_MAY_LOAD = {"src", "srcset", "action", "data", "poster", "xlink:href"}


class _Reader(HTMLParser):
    """A parser that collects elements with attributes and checks that each is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def of(self, tag: str, class_: str = "") -> list[dict[str, str | None]]:
        return [
            attrs
            for name, attrs in self.elements
            if name == tag and class_ in [*(attrs.get("class") or "").split(), ""]
        ]


@pytest.fixture(scope="module")
def text() -> str:
    return page(with_everything(), TEXTS)


@pytest.fixture(scope="module")
def read(text: str) -> _Reader:
    return _Reader(text)


def test_nothing_is_loaded_from_elsewhere(text: str, read: _Reader) -> None:
    for tag, attrs in read.elements:
        assert tag not in {"link", "iframe", "object", "embed", "img", "base"}
        assert not _MAY_LOAD & attrs.keys()
        assert str(attrs.get("href", "#")).startswith("#")
    assert not re.search(r"url\(|@import|https?:", text)


def test_only_its_own_script_may_run(text: str, read: _Reader) -> None:
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == len(read.of("script")) == 1
    digest = b64encode(sha256(scripts[0].encode()).digest()).decode()
    (policy,) = (each["content"] for each in read.of("meta") if each.get("http-equiv"))
    assert f"script-src 'sha256-{digest}'" in str(policy)
    assert "default-src 'none'" in str(policy)


def test_client_chosen_text_is_escaped_everywhere(text: str, read: _Reader) -> None:
    assert "<script>alert" not in text
    assert HOSTILE not in text
    assert not any(char in text for char in "\x1b\u202e")
    assert not [attrs for _, attrs in read.elements if any(name.startswith("on") for name in attrs)]


CLIENT_NAMES = {
    "a terminal color code": ("a\x1b[31m", "a\\x1b[31m"),
    "a direction override": ("\u202egnp", "\\u202egnp"),
    "an end-of-text character": ("a\0", "a\\x00"),
    "a lone surrogate": ("\ud800", "\\ud800"),
    "markup": ('"><i>', "&#34;&gt;&lt;i&gt;"),
}


@pytest.mark.parametrize(("name", "shown"), CLIENT_NAMES.values(), ids=CLIENT_NAMES)
def test_client_name_is_visible_text(name: str, shown: str) -> None:
    made = page(result(subject(name, "1", verdict(why=name))), {})
    assert made.count(f"<title>Audit of {shown} 1</title>") == 1
    assert f'title="{shown}"' in made
    assert name not in made


def test_every_cell_links_to_its_evidence(read: _Reader) -> None:
    dialogs = [attrs["id"] for attrs in read.of("dialog")]
    links = [str(attrs["href"]).removeprefix("#") for attrs in read.of("a", "cell")]
    assert len(links) == sum(len(each.verdicts) for each in with_everything().subjects)
    assert set(links) <= set(dialogs)
    ids = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    fragments = {str(attrs["href"])[1:] for attrs in read.of("a") if attrs["href"] != "#"}
    assert fragments <= set(ids)


def test_statement_has_a_cell_for_each_client() -> None:
    read = _Reader(page(result(subject("a", "1", verdict()), subject("b", "1")), {}))
    assert [attrs["class"] for attrs in read.of("a", "cell")] == ["cell pass"]
    assert len(read.of("span", "none")) == 1


def test_only_rows_with_deviations_are_marked() -> None:
    one = subject("a", "1", verdict("KIP-580/1", State.DEVIATES), verdict("KIP-580/2"))
    assert len(_Reader(page(result(one), {})).of("tr", "deviates")) == 1


def test_statements_and_recoveries_are_shown(text: str) -> None:
    assert TEXTS["KIP-580/1"] in text
    assert "30.2 s" in text


def test_empty_report_is_a_page() -> None:
    assert _Reader(page(result(), {})).of("h1")
