"""The programs of examples/explore: the committed failure of each breaks the naive version, and not the fixed one.

`tools/campaign run explore --write` writes them; test_generate.py compares the pages that show them.
"""

import pytest

from sluice.explore.execution import execute
from tools.explore.examples import Example, examples, findings

EXAMPLES = list(examples())
_MOST_FAILURES = 4

each_example = pytest.mark.parametrize("example", EXAMPLES, ids=str)


def test_each_bug_was_found_in_programs_of_both_clients() -> None:
    assert findings().keys() == {str(example) for example in EXAMPLES}
    assert len(EXAMPLES) == 24
    assert max(finding.most_failures for finding in findings().values()) <= _MOST_FAILURES


@each_example
def test_naive_program_breaks(example: Example) -> None:
    finding = findings()[str(example)]
    broken = execute(example.naive, finding.schedule, example.options)
    assert broken.error == finding.error
    assert not broken.missed


@each_example
def test_fixed_program_survives(example: Example) -> None:
    assert execute(example.fixed, findings()[str(example)].schedule, example.options).error == ""
