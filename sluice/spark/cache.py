"""The cache folder: `$XDG_CACHE_HOME/sluice`, by default `~/.cache/sluice`."""

import os
from pathlib import Path


def cache_folder() -> Path:
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "sluice"
