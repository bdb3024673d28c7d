"""Modules whose import is deferred."""

import sys
from types import ModuleType

import pytest

from sluice.cli.serve import deferred_modules


@pytest.fixture
def colorsys(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a deferred module."""
    for name in ("colorsys", "typing_extensions"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(deferred_modules, "_NAMES", ("colorsys",))
    deferred_modules.defer_modules()
    assert "typing_extensions" not in sys.modules
    module = sys.modules["colorsys"]
    assert "rgb_to_hls" not in vars(module)
    return module


def test_deferred_module_is_imported_with_its_first_attribute(colorsys: ModuleType) -> None:
    import colorsys as imported

    assert imported is colorsys
    assert imported.rgb_to_hls(0, 0, 0) == (0.0, 0.0, 0.0)
    assert type(colorsys) is ModuleType


def test_from_import_of_a_deferred_module_imports_it(colorsys: ModuleType) -> None:
    from colorsys import rgb_to_hls

    assert colorsys.rgb_to_hls is rgb_to_hls


def test_deferred_module_has_no_other_attributes(colorsys: ModuleType) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'unknown'"):
        _ = colorsys.unknown
    with pytest.raises(AttributeError, match="has no attribute 'unknown'"):
        _ = colorsys.unknown


def test_submodule_is_an_attribute_of_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import xml

    monkeypatch.delitem(sys.modules, "xml.sax", raising=False)
    monkeypatch.delattr(xml, "sax", raising=False)
    monkeypatch.setattr(deferred_modules, "_NAMES", ("xml.sax",))
    deferred_modules.defer_modules()
    assert vars(xml)["sax"] is sys.modules["xml.sax"]
    assert sys.modules["xml.sax"].__name__ == "xml.sax"


def test_imported_module_is_kept() -> None:
    deferred_modules.defer_modules()
    assert type(sys.modules["inspect"]) is ModuleType


def test_missing_module_is_not_deferred(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred_modules, "_NAMES", ("no_such_module",))
    deferred_modules.defer_modules()
    assert "no_such_module" not in sys.modules
