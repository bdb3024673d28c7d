"""Human-readable numbers and names."""

import pytest

from sluice.audit.judge.model.verdict import Fit, Sort, State
from sluice.audit.report import words as report_words
from tests.support.audit_results import subject, verdict


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.41, "0.41 ms"), (12.34, "12.3 ms"), (999.4, "999 ms"), (1250, "1.25 s"), (125_000, "2 min 5 s"),
     (-40, "-40 ms"), (179_999, "3 min 0 s")],
)  # fmt: skip
def test_time_has_a_suitable_unit(value: float, words: str) -> None:
    assert report_words.milliseconds(value) == words


@pytest.mark.parametrize(
    ("version", "shown"),
    [("0.1.0.dev480+g3963666e9", "0.1.0.dev480"), ("2.16.1-rdkafka-2.16.0", "2.16.1-rdkafka-2.16.0"),
     ("1.0+abc", "1.0+abc")],
    ids=["built from source", "of an underlying library", "of a custom client"],
)  # fmt: skip
def test_version_is_shown_without_its_commit(version: str, shown: str) -> None:
    assert report_words.name_of(subject("app", version).subject) == f"app {shown}"


NUMBERS = [
    ("first_gap_ms", 104.0, "104 ms"),
    ("ratio", 1.98333, "1.983"),
    ("connects", 4120.0, "4,120"),
    ("model", "linear", "linear"),
]


@pytest.mark.parametrize(("name", "value", "words"), NUMBERS)
def test_number_is_formatted_by_its_name(name: str, value: float | str, words: str) -> None:
    assert report_words.measured(name, value) == words


def _fit(model: str, multiplier: float, cap_ms: float | None, jitter: float) -> Fit:
    return Fit(
        model=model,
        base_ms=100,
        multiplier=multiplier,
        cap_ms=cap_ms,
        jitter=jitter,
        residual=jitter / 2,
        confidence=1.0,
        waits=9,
    )


MODELS = {
    "exponential": (
        _fit("exponential", 2, 1000, 0.2),
        "exponential: 100 ms, × 2 each time, up to 1 s, ± 20 % jitter (9 of 10 waits within 10 %)",
    ),
    "linear": (_fit("linear", 50, None, 0), "linear: 100 ms, + 50 ms each time, no jitter (9 of 10 waits within 0 %)"),
    "constant": (_fit("constant", 1, None, 0), "constant: 100 ms, no jitter (9 of 10 waits within 0 %)"),
}


@pytest.mark.parametrize(("fit", "words"), MODELS.values(), ids=MODELS)
def test_model_description(fit: Fit, words: str) -> None:
    assert report_words.fit_words(fit) == words


def test_statements_are_sorted_by_number() -> None:
    ids = ["KIP-580/10", "KIP-580/2", "KIP-91/1", "KIP-580/2", "KIP-144/1"]
    assert report_words.in_order(ids) == ["KIP-91/1", "KIP-144/1", "KIP-580/2", "KIP-580/10"]


def test_each_kind_of_verdict_looks_different() -> None:
    for distinct in ("key", "sign", "short", "words"):
        assert len({getattr(style, distinct) for style in report_words.STYLES}) == len(report_words.STYLES), distinct


@pytest.mark.parametrize(
    ("sort", "style"),
    [
        (Sort.VIOLATES_ITS_DOCUMENTATION, report_words.VIOLATES),
        (Sort.DIFFERS_FROM_KIP, report_words.DIFFERS),
        (Sort.PREDATES_KIP, report_words.PREDATES),
        (None, report_words.DIFFERS),
    ],
)
def test_deviations_are_distinguished_by_kind(sort: Sort | None, style: object) -> None:
    found = report_words.style_of(verdict(state=State.DEVIATES, sort=sort))
    assert found is style
    assert found in report_words.DEVIATIONS


def test_verdicts_are_counted_by_appearance() -> None:
    of_one = subject("shop", "1", verdict(state=State.NOT_OBSERVABLE), verdict(), verdict("KIP-580/2"))
    assert [(style.key, count) for style, count in report_words.counts(of_one).items()] == [
        ("pass", 2),
        (report_words.UNSEEN.key, 1),
    ]


def test_settings_are_formatted_as_properties() -> None:
    settings: dict[str, float | str | bool] = {"retries": 2147483647.0, "enable.idempotence": True, "acks": "a\nb"}
    assert report_words.setting_words(settings) == [
        ("acks", "a\\nb"),
        ("enable.idempotence", "true"),
        ("retries", "2147483647"),
    ]


def test_unknown_kip_has_no_title() -> None:
    assert report_words.title_of("KIP-580")
    assert (report_words.title_of("KIP-9999"), report_words.title_of("house rules")) == ("", "")
