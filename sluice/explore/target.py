"""Tests that are explored: what a function must be, and the test of FILE::TEST, loaded without pytest."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
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
    function = getattr(module, target.name, None)
    if not inspect.isfunction(function):
        names = [name for name, each in vars(module).items() if inspect.isfunction(each) and _is_test(each)]
        wanted = f"one of {', '.join(names)}" if names else f"`async def {target.name}({RUN})` in this file"
        raise ConfigError(f"{target}: unknown test; expected {wanted}")
    function = inspect.unwrap(function)
    try:
        parameters = check_test(function, target.name)
        mark = next(_marks(module, function), None)
        given = {} if mark is None else mark_arguments(mark)
    except ArgumentError as error:
        raise ConfigError(f"{target}: {error}") from None
    for name in parameters:
        if name != RUN:
            raise ConfigError(
                f"{target}: {expected(f'the fixture {RUN} only', name)}. "
                f"To explore a test with other fixtures, run pytest --kafka-explore-runs=N {target}."
            )
    return Loaded(lambda run: function(**{RUN: run}), module.__name__, Explored(target.name, parameters), given)


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


def _marks(module: ModuleType, function: Callable[..., object]) -> Iterator[Any]:
    """Yield the marks of a function, the closest one first."""
    for owner in (function, module):
        marks: Any = getattr(owner, "pytestmark", [])
        for each in marks if isinstance(marks, Sequence) else [marks]:
            mark: Any = getattr(each, "mark", each)  # in a module, it may be a decorator
            if mark.name == MARK:
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
