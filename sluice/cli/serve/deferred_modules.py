"""Modules that asyncio and msgspec import but most brokers never use, imported on first use: a sixth of the start."""

import sys
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from threading import RLock
from types import ModuleType

_NAMES = ("inspect", "ssl", "asyncio.sslproto", "msgspec.inspect")
_OPTIONAL = "typing_extensions"
_lock = RLock()
_deferred: set[str] = set()


class _DeferredModule(ModuleType):
    def __getattr__(self, name: str) -> object:
        with _lock:
            if self.__name__ in _deferred:
                _deferred.remove(self.__name__)
                spec = self.__spec__
                assert spec is not None
                assert spec.loader is not None
                spec.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]  # valid for modules
        return ModuleType.__getattribute__(self, name)


def defer_modules() -> None:
    for name in _NAMES:
        if name not in sys.modules:
            _defer(name)
    hides = _OPTIONAL not in sys.modules
    if hides:
        sys.modules[_OPTIONAL] = None  # type: ignore[assignment]  # an import raises ImportError
    for name in _NAMES:
        parent, _, child = name.rpartition(".")
        if parent and name in _deferred:
            setattr(import_module(parent), child, sys.modules[name])  # as an import does
    if hides:
        del sys.modules[_OPTIONAL]


def _defer(name: str) -> None:
    parent = name.rpartition(".")[0]
    package = PathFinder.find_spec(parent) if parent else None
    spec = PathFinder.find_spec(name, None if package is None else package.submodule_search_locations)
    if spec is not None and spec.loader is not None:
        module = sys.modules[name] = module_from_spec(spec)
        module.__class__ = _DeferredModule
        _deferred.add(name)
