"""CRC-32C, the checksum of magic 2 batches.

Loading the extension takes some milliseconds, so the first checksum does it. Call it as `crc.crc32c(...)`: loading
replaces that name.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder

Bytes = bytes | bytearray | memoryview


def _load_and_compute(data: Bytes) -> int:
    load()
    return crc32c(data)


crc32c: Callable[[Bytes], int] = _load_and_compute


def load() -> None:
    """Load the extension module of the crc32c package, without the package.

    The package reads its version by importlib.metadata, which takes 30 ms and 4 MB with the modules that it imports.
    """
    global crc32c
    package = PathFinder.find_spec("crc32c")
    extension = package and PathFinder.find_spec("_crc32c", package.submodule_search_locations)
    if extension is None or extension.loader is None:
        from crc32c import crc32c as implementation
    else:
        from importlib.util import module_from_spec

        module = module_from_spec(extension)
        extension.loader.exec_module(module)
        implementation = module.crc32c
    crc32c = implementation
