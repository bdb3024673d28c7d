"""The defects in docs/findings still exist; those that a newer version of the client fixed are skipped with it."""

from pathlib import Path

import pytest

from sluice.audit.subjects import SUBJECTS
from tests.support import skips
from tools.docs.results.findings import DEFECTS, plotted, reproduce

pytestmark = pytest.mark.client_audits


@pytest.mark.timeout(300)  # builds, if it is the first
@pytest.mark.parametrize("name", DEFECTS)
def test_defect_is_reproduced(name: str, tmp_path: Path) -> None:
    defect = DEFECTS[name]
    if why := SUBJECTS[defect.subject].missing():
        pytest.skip(skips.build(defect.subject, why))
    result = reproduce(defect, tmp_path)
    if not defect.why(result) and result.subject.version != defect.version:
        lacks = f"{result.subject.version} lacks the defect of {defect.version}: update docs/findings/{name}.md"
        pytest.skip(skips.feature(defect.subject, lacks))
    assert defect.why(result), result.problems
    assert result.seconds < 60
    assert plotted(defect, tmp_path).count("<circle") > 10
