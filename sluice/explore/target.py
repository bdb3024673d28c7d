"""Tests that are explored: what a function must be, and the test of FILE::TEST, loaded without pytest."""

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from importlib import import_module
from itertools import product
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any, NamedTuple, cast

from sluice.errors import ArgumentError, ConfigError
from sluice.text.error_text import expected

from .execution import Program
from .output.regression import Explored
from .processes import error_line

MARK = "kafka_explore"
RUN = "kafka_run"
_SHOWN = (str, int, float, complex, bool, type(None), Enum)  # values that pytest shows in ids
Values = Mapping[str, object]  # of parameters, by name


class Target(NamedTuple):
    """FILE::TEST."""

    file: str
    name: str

    def __str__(self) -> str:
        return f"{self.file}::{self.name}"

    def resolved(self) -> "Target":
        return Target(str(Path(self.file).resolve()), self.name)


class Loaded(NamedTuple):
    """A test of a file.

    module: name of the file's module
    test: the test, in reports
    given: arguments of the mark
    """

    program: Program
    module: str
    test: Explored
    given: Mapping[str, Any]


def parse_target(text: str) -> Target:
    """Return the target of FILE::TEST. Raises ConfigError."""
    file, _, name = text.partition("::")
    if not (file and name):
        raise ConfigError(f"FILE::TEST: {expected('a file and a test, such as test_orders.py::test_orders', text)}")
    return Target(file, name)


def load(target: Target) -> Loaded:
    """Import the file, and return its test. Raises ConfigError."""
    module = _imported(target.file)
    test, _, case = target.name.partition("[")
    function = getattr(module, test, None)
    if not inspect.isfunction(function):
        names = [name for name, each in vars(module).items() if inspect.isfunction(each) and _is_test(each)]
        wanted = f"one of {', '.join(names)}" if names else f"`async def {test}({RUN})` in this file"
        raise ConfigError(f"{target}: unknown test; expected {wanted}")
    function = inspect.unwrap(function)
    try:
        parameters = check_test(function, test)
        mark = next(_marks(module, function, MARK), None)
        given = {} if mark is None else mark_arguments(mark)
    except ArgumentError as error:
        raise ConfigError(f"{target}: {error}") from None
    cases = parametrized(_marks(module, function, "parametrize"))
    values = cases.get(case.removesuffix("]") if case else "")
    if values is None:
        ids = ", ".join(f"{test}[{each}]" if each else test for each in cases)
        raise ConfigError(f"{target}: unknown test; expected one of {ids}")
    parameters = [name for name in parameters if name not in values]
    for name in parameters:
        if name != RUN:
            raise ConfigError(
                f"{target}: {expected(f'the fixture {RUN} only', name)}. "
                f"To explore a test with other fixtures, run pytest --kafka-explore-runs=N {target}."
            )
    explored = Explored(test, parameters, values)
    return Loaded(lambda run: function(**{**values, RUN: run}), module.__name__, explored, given)


def check_test(function: Callable[..., object], name: str) -> list[str]:
    """Return the parameters of a test. Raises ArgumentError."""
    if not _is_test(function):
        raise ArgumentError(f"expected `async def {name}({RUN})`")
    return list(inspect.signature(function).parameters)


def _is_test(function: Callable[..., object]) -> bool:
    function = inspect.unwrap(function)
    return inspect.iscoroutinefunction(function) and RUN in inspect.signature(function).parameters


def mark_arguments(mark: Any) -> Mapping[str, Any]:
    """Return the arguments of a mark of pytest. Raises ArgumentError."""
    if mark.args:
        raise ArgumentError(f"expected NAME=VALUE, got {mark.args[0]!r}")
    return cast("Mapping[str, Any]", mark.kwargs)


def _marks(module: ModuleType, function: Callable[..., object], name: str) -> Iterator[Any]:
    """Yield the marks of a function with a name, the closest one first."""
    for owner in (function, module):
        marks: Any = getattr(owner, "pytestmark", [])
        for each in marks if isinstance(marks, Sequence) else [marks]:
            mark: Any = getattr(each, "mark", each)  # in a module, it may be a decorator
            if mark.name == name:
                yield mark


def _imported(file: str) -> ModuleType:
    """Import a file as pytest does: its folder, or that of its outermost package, is added to sys.path."""
    path = Path(file).resolve()
    if path.suffix != ".py" or not path.is_file():
        problem = expected("a Python file", file) if path.exists() else "no such file"
        raise ConfigError(f"{file}: {problem}")
    root, names = path.parent, [path.stem]
    while (root / "__init__.py").is_file():
        root, names = root.parent, [root.name, *names]
    name = ".".join(names)
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) != str(path):
        raise ConfigError(f"{file}: cannot import: {name} is also the name of another module; rename the file")
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        return import_module(name)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except SyntaxError as error:
        place = file if error.filename == str(path) else error.filename
        raise ConfigError(f"{place}:{error.lineno}: {error.msg}") from None
    except BaseException as error:  # a skipped module of pytest, and sys.exit(), are no Exceptions
        lines = [line for frame, line in walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)]
        place = f"{file}:{lines[-1]}" if lines else file
        raise ConfigError(f"{place}: cannot import: {error_line(error)}") from None


# -- cases of tests with pytest.mark.parametrize -----------------------------------------------------------------------


def parametrized(marks: Iterable[Any]) -> Mapping[str, Values]:
    """Return the values of each case by its id in pytest, of marks with the closest one first; without any, of ""."""
    found: dict[str, Values] = {}
    for cases in product(*(_cases(*mark.args, **mark.kwargs) for mark in marks)):
        found["-".join(case_id for case_id, _ in cases)] = {
            name: value for _, values in cases for name, value in values.items()
        }
    return found


def _cases(argnames: Any, argvalues: Iterable[Any], ids: Any = None, **_options: object) -> list[tuple[str, Values]]:
    names = [name.strip() for name in argnames.split(",")] if isinstance(argnames, str) else [*argnames]
    given = [*ids] if isinstance(ids, Iterable) else None
    return [_case(names, each, number, given[number] if given else ids) for number, each in enumerate(argvalues)]


def _case(names: Sequence[str], given: Any, number: int, case_id: Any) -> tuple[str, Values]:
    """`case_id`: text, a function of a value, or None."""
    values = getattr(given, "values", None)  # of pytest.param
    own_id = getattr(given, "id", None) if isinstance(values, tuple) else None
    if not isinstance(values, tuple):
        values = given if len(names) > 1 else (given,)
    if own_id is None and case_id is not None and not callable(case_id):
        own_id = str(case_id)
    if own_id is None:
        shown = [(case_id(value) if callable(case_id) else None, value) for value in values]
        parts = [text or _shown(value) or f"{name}{number}" for name, (text, value) in zip(names, shown, strict=True)]
        own_id = "-".join(map(str, parts))
    return own_id, dict(zip(names, values, strict=True))


def _shown(value: object) -> str:
    name = getattr(value, "__name__", "")
    return str(value) if isinstance(value, _SHOWN) else name if isinstance(name, str) else ""
