"""Write docs/lint-matrix.md from the results of the lint matrix (tools/lint)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from sluice.lint.registry import all_rules
from tools.lint.clients import CLIENTS
from tools.lint.explained import reason_for
from tools.lint.plants import FEWER
from tools.lint.verdicts import Reported, Verdict

PAGE = Path(__file__).parents[3] / "docs" / "lint-matrix.md"
_MOST_SHOWN = 3  # uses with the same finding
_HEAD = """\
# What lint finds in real clients

These are the results of `sluice lint` for nine clients: with planted misconfigurations, with their remedies, and with
their default settings. Use them to see which findings to expect from a client before you change any setting.

`tools/campaign run lint-matrix` runs the clients and rewrites this page.

"""
_PLANTS = """\
## Planted misconfigurations

Each row is a rule. A cell contains the number of passed runs and of all runs. In a passed run, the rule found the
planted misconfiguration, no other rule reported an error, and the finding was gone after the remedy. The runs of a cell
differ in sizes, counts and times.

"""
_DEFAULTS = """\
## Default settings

Each client did twelve ordinary things with its default settings: it produced, consumed, used transactions, survived
the restart of a broker, and was throttled. It also ran the examples of its documentation. The table lists all findings,
with the reason why each is true.

"""


def write_page(verdicts: Sequence[Verdict], found: Sequence[Reported]) -> None:
    PAGE.write_text(page_of(verdicts, found), encoding="utf-8")


def page_of(verdicts: Sequence[Verdict], found: Sequence[Reported]) -> str:
    return _HEAD + _PLANTS + "\n".join([*_planted(verdicts), "", ""]) + _DEFAULTS + "\n".join([*_defaults(found), ""])


def _planted(verdicts: Sequence[Verdict]) -> Iterator[str]:
    clients = [each.name for each in CLIENTS if any(each.name == one.client for one in verdicts)]
    cells: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for each in verdicts:
        cells[each.rule, each.client].append(each.passes)
    yield f"| rule | {' | '.join(clients)} |"
    yield "|---|" + ":-:|" * len(clients)
    for rule in all_rules():
        row = [_share(cells.get((rule, client), [])) for client in clients]
        if any(row):
            yield f"| `{rule}` | {' | '.join(row)} |"
    passed = sum(each.passes for each in verdicts)
    fewer = [f"`{rule}`: {reason}." for rule, reason in FEWER.items()]
    yield ""
    yield f"Rules with fewer than three clients: {' '.join(fewer)}"
    yield ""
    yield f"In all: {passed} of {len(verdicts)} ({passed / len(verdicts):.1%})."


def _share(passed: Sequence[bool]) -> str:
    return f"{sum(passed)}/{len(passed)}" if passed else ""


def _defaults(found: Sequence[Reported]) -> Iterator[str]:
    scenes: dict[tuple[str, str], list[Reported]] = defaultdict(list)
    for each in found:
        scenes[each.client, each.rule].append(each)
    yield "| client | rule | in | for example | why it is true |"
    yield "|---|---|---|---|---|"
    for client in [each.name for each in CLIENTS]:
        for rule in all_rules():
            if reports := scenes.get((client, rule)):
                uses = sorted({each.scene for each in reports})
                shown = "; ".join(uses[:_MOST_SHOWN]) + (
                    f"; {len(uses) - _MOST_SHOWN} others" * (len(uses) > _MOST_SHOWN)
                )
                yield f"| {client} | `{rule}` | {shown} | {_text(reports[0].text)} | {reason_for(rule, client)} |"


def _text(text: str) -> str:
    return text.replace("|", "\\|")
