"""A test that repeats a run without a search, as Python text."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import NamedTuple

import msgspec

from sluice.explore.execution import Options, Schedule

_LONGEST_LINE = 100
_EXPLORE = "sluice.explore"


class Explored(NamedTuple):
    """What is explored, as a test repeats it.

    name: name of the function
    parameters: parameters of a test; none for the program of a call of `explore`
    values: values of other parameters, of `pytest.mark.parametrize`
    """

    name: str
    parameters: Sequence[str] = ()
    values: Mapping[str, object] = {}

    @classmethod
    def of_program(cls, program: object) -> "Explored":
        name = str(getattr(program, "__name__", ""))
        return cls(name if name.isidentifier() else "program")


def regression_test(test: Explored, schedule: Schedule, options: Options) -> str:
    """Return a test for the module of the program."""
    kinds = [each.kind.replace("-", "_") for each in schedule.injections] or ["another_order"]
    name = f"{test.name}_after_{'_and_'.join(kinds)}"
    given = _arguments(schedule, options)
    if not test.parameters:
        texts = [test.name, given.pop("replay"), *(f"{key}={value}" for key, value in given.items())]
        return f"def {name if name.startswith('test') else f'test_{name}'}():\n{_call('    replay', texts)}\n"
    values = [f"{name}={_source(value)}" for name, value in test.values.items()]
    return (
        f"{_call('@pytest.mark.kafka_explore', [f'{key}={value}' for key, value in given.items()])}\n"
        f"async def {name}({', '.join(test.parameters)}):\n"
        f"    await {test.name}({', '.join([*test.parameters, *values])})\n"
    )


def regression_file(test: Explored, module: str, schedule: Schedule, options: Options) -> str:
    """Return a file with the test of a test in a module."""
    names = sorted(_names(options.invariants))
    own = [*_of_module(test.values.values(), module), f"from {module} import {test.name} as explored"]
    lines = ["import pytest", "", *(f"from {of} import {name}" for of, name in names), *own, "", "", ""]
    text = regression_test(test, schedule, options)
    return "\n".join(lines) + text.replace(f"    await {test.name}(", "    await explored(")


def _of_module(values: Iterable[object], module: str) -> Iterator[str]:
    """Yield the imports of functions and classes of a module."""
    for value in values:
        if isinstance(value, FunctionType | type) and value.__module__ == module:
            yield f"from {module} import {value.__name__}"


def repeated(schedule: Schedule) -> str:
    """Return the arguments of the mark that repeat a run."""
    return ", ".join(f"{name}={value}" for name, value in _arguments(schedule, Options()).items())


def _arguments(schedule: Schedule, options: Options) -> dict[str, str]:
    given: dict[str, object] = {"replay": [str(each) for each in schedule.injections]}
    given |= _changed(schedule, but="injections") | _changed(options)
    if schedule.sizes:
        given["sizes"] = dict(schedule.sizes)
    return {name: _source(value) for name, value in given.items()}


def _changed(struct: msgspec.Struct, but: str = "") -> dict[str, object]:
    """Return the fields that differ from their defaults."""
    defaults = type(struct)()
    fields = {name: getattr(struct, name) for name in struct.__struct_fields__ if name != but}
    return {name: value for name, value in fields.items() if value != getattr(defaults, name)}


def _source(value: object) -> str:
    """Return the Python text of a value."""
    match value:
        case FunctionType() | type():
            return value.__name__
        case str():
            return json.dumps(value, ensure_ascii=False)
        case msgspec.Struct():
            changed = {name: getattr(value, name) for name in value.__struct_fields__}
            for field in msgspec.structs.fields(value):
                if not field.required and changed[field.name] == field.default:
                    del changed[field.name]
            required = [_source(changed.pop(field.name)) for field in msgspec.structs.fields(value) if field.required]
            texts = [*required, *(f"{name}={_source(each)}" for name, each in changed.items())]
            return f"{type(value).__name__}({', '.join(texts)})"
        case Mapping():
            return "{" + ", ".join(f"{_source(key)}: {_source(each)}" for key, each in value.items()) + "}"
        case Sequence() if not isinstance(value, bytes):
            return f"[{', '.join(map(_source, value))}]"
    return repr(value)


def _names(value: object) -> Iterator[tuple[str, str]]:
    """Yield the modules and names of the classes of a value."""
    if isinstance(value, msgspec.Struct):
        of = type(value).__module__
        yield _EXPLORE if of.startswith(_EXPLORE) else of, type(value).__name__
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from _names(each)


def _call(function: str, arguments: Sequence[str]) -> str:
    line = f"{function}({', '.join(arguments)})"
    if len(line) <= _LONGEST_LINE:
        return line
    indent = " " * (len(function) - len(function.lstrip()))
    return "\n".join([f"{function}(", *(f"{indent}    {each}," for each in arguments), f"{indent})"])
