"""The family of exceptions: each class that a user can get has a public name."""

import ast
import builtins
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

import sluice
from sluice import errors
from sluice.client import consumer as consumer_module
from sluice.client import errors as client_errors
from sluice.errors import RemoteProtocolError, SluiceError
from sluice.streams import errors as streams_errors

ROOT = Path(sluice.__file__).parent
PUBLIC = [sluice, client_errors, consumer_module, streams_errors]
# The others are behind commands, which print the message alone.
PACKAGES = (
    "broker",
    "client",
    "config",
    "embedded",
    "protocol",
    "purgatory",
    "quotas",
    "streams",
    "virtual_time",
    "web",
)
# Classes that no public function raises, with the reason.
INTERNAL = {
    "RemoteProtocolError": "closes the connection of the peer",
    "FrameSizeError": "the same",
    "SubjectError": "a message of `sluice audit`",
    "_RejoinNeededError": "caught by the group membership of the consumer",
    "_UnusableUpstreamError": "caught by the discovery of a proxy",
}


def subclasses(cls: type[SluiceError]) -> Iterator[type[SluiceError]]:
    for each in cls.__subclasses__():
        yield each
        yield from subclasses(each)


def test_each_class_is_public_or_internal_for_a_reason() -> None:
    for name in PACKAGES:
        for module in walk_packages(import_module(f"sluice.{name}").__path__, f"sluice.{name}."):
            import_module(module.name)
    found = {each for each in subclasses(SluiceError) if each.__module__.startswith("sluice.")}
    hidden = {each for each in found if not any(getattr(place, each.__name__, None) is each for place in PUBLIC)}
    assert {each.__name__ for each in hidden} == INTERNAL.keys()
    assert RemoteProtocolError in hidden


def test_package_exports_each_class_of_the_module_of_errors() -> None:
    defined = {each.__name__ for each in subclasses(SluiceError) if each.__module__ == errors.__name__}
    exported = {name for name in sluice.__all__ if name.endswith(("Error", "Exception"))}
    assert exported == {*defined, "SluiceError", "KafkaException"} - INTERNAL.keys()
    for name in exported:
        assert issubclass(getattr(sluice, name), SluiceError)


# `raise NAME(...)` of Python's own exceptions, and why they are none of the family.
ALLOWED = {
    "AssertionError": "a failed assertion of a test",
    "NotImplementedError": "an abstract method, or a feature of asyncio that the memory network lacks",
}
PUBLIC_MODULES = [
    *ROOT.glob("embedded/*.py"),
    *(ROOT / f"{name}.py" for name in ("faults", "kafka_test_case", "scenarios", "testing")),
    ROOT / "virtual_time" / "link.py",
    ROOT / "broker" / "journal" / "reader.py",
]


@pytest.mark.parametrize("file", PUBLIC_MODULES, ids=lambda file: file.stem)
def test_public_modules_raise_only_the_family(file: Path) -> None:
    raised = set()
    for node in ast.walk(ast.parse(file.read_text())):
        call = node.exc if isinstance(node, ast.Raise) else None
        name = call.func if isinstance(call, ast.Call) else call
        if isinstance(name, ast.Name) and hasattr(builtins, name.id):
            raised.add(name.id)
    assert raised <= ALLOWED.keys()
