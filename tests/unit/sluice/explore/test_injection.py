"""Injections: their texts, and the kinds of failures."""

import pytest

from sluice.errors import ArgumentError
from sluice.explore.injection import CHANGES, KINDS, Injection, numberless, parse, pattern_of
from sluice.protocol.apis import API_KEYS

APIS = {api.name for api in API_KEYS.values()}
TEXTS = {
    "a client": ("kill-after shop OffsetCommit 1", Injection("kill-after", "shop", "OffsetCommit", 1)),
    "a client without an id": ('slow "" Fetch 12', Injection("slow", "", "Fetch", 12)),
    "a client with spaces": ("slow my shop Fetch 12", Injection("slow", "my shop", "Fetch", 12)),
}
WRONG = {
    "no number": ("kill-after shop OffsetCommit", "expected KIND CLIENT_ID API NTH"),
    "number zero": ("kill-after shop OffsetCommit 0", "expected KIND CLIENT_ID API NTH"),
    "no client": ("kill-after OffsetCommit 1", "expected KIND CLIENT_ID API NTH"),
    "empty": ("", "expected KIND CLIENT_ID API NTH"),
    "an unknown kind": ("kil-after shop OffsetCommit 1", "replay: expected one of response-lost, "),
    "an API without this failure": ("throttle shop Metadata 1", "replay: throttle: expected one of "),
}


@pytest.mark.parametrize(("text", "expected"), TEXTS.values(), ids=TEXTS)
def test_text_of_an_injection(text: str, expected: Injection) -> None:
    assert parse(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize(("text", "expected"), WRONG.values(), ids=WRONG)
def test_wrong_text(text: str, expected: str) -> None:
    with pytest.raises(ArgumentError, match=expected):
        parse(text)


CLIENT_IDS = [
    ("producer-12", "producer-*", "producer-[0-9]*"),
    ("shop", "shop", "shop"),
    ("shop-1a", "shop-1a", "shop-1a"),
    ("shop*", "shop*", "shop[*]"),
    ("", "", ""),
]


@pytest.mark.parametrize(("client_id", "point", "pattern"), CLIENT_IDS)
def test_client_ids_without_their_numbers(client_id: str, point: str, pattern: str) -> None:
    assert numberless(client_id) == point
    assert pattern_of(point) == pattern


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_kind_has_known_apis_and_an_effect(kind: object) -> None:
    assert kind.apis <= APIS  # type: ignore[attr-defined]  # a Kind
    assert kind.action or kind.event  # type: ignore[attr-defined]  # as above


def test_changes_are_known_apis() -> None:
    assert CHANGES <= APIS
