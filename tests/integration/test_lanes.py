"""Processes that share the collection of one pytest."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = """
    import pytest
    from tests.support import lanes

    def pytest_addoption(parser):
        parser.addoption("--outcomes")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(session):
        lanes.run(session, 2)
        return True
"""
TESTS = """
    from pathlib import Path
    from time import sleep

    import pytest

    @pytest.mark.parametrize("number", range(40))
    def test_number(number):
        Path(f"{number}").touch(exist_ok=False)
        while number in (0, 20) and not Path(f"{20 - number}").exists():  # another lane is beside this one
            sleep(0.01)
        print("a line of", number)
        assert number != 20
"""


def test_each_test_runs_once_and_a_failure_of_any_lane_counts(pytester: pytest.Pytester) -> None:
    pytester.syspathinsert(Path(__file__).parents[2])
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("-q")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert sorted(path.name for path in pytester.path.iterdir() if path.name.isdecimal()) == sorted(map(str, range(40)))
    text = result.stdout.str()
    assert text.count("1 failed, ") == 1
    assert text.count("a line of 20") == 1
