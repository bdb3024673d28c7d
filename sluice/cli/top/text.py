"""Compact numbers and bars for `sluice top`."""

from collections.abc import Iterable

from rich.text import Text

from sluice.text.json_text import json_text
from sluice.web.client_row import Point

from .feed import State

_PREFIXES = ("", "k", "M", "G", "T")
_LEVELS = "▁▂▃▄▅▆▇█"
_FULL, _LINE = "━", "─"


def short(number: float) -> str:
    """Return a number in up to five characters: 950, 1.2k, 34M."""
    for prefix in _PREFIXES:
        if abs(number) < 999.5:
            digits = 1 if prefix and abs(number) < 9.95 else 0
            return f"{number:.{digits}f}{prefix}"
        number /= 1000
    return f"{number:.0f}P"


def waits(ms: float) -> str:
    """Return a duration as the web page (format.js): 240 ms, 8.1 s, 43 s, 2 min 32 s, 3 h 5 min."""
    if ms < 999.5:
        return f"{ms:.0f} ms"
    if ms < 9_950:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"
    hours, minutes = divmod(round(ms / 60_000), 60)
    return f"{hours} h {minutes} min"


def bar(share: float, width: int) -> Text:
    cells = min(width, round(share * width))
    style = "red" if share > 1 else "yellow" if share > 0.8 else "green"
    text = Text(_FULL * cells, style=style)
    text.append(_LINE * (width - cells), style="dim")
    return text


def sparkline(points: Iterable[Point], look: int, looks: int, width: int) -> Text:
    rates, held = [0] * width, [False] * width
    for number, per_s, is_held in points:
        column = width - 1 - (look - number) * width // looks
        if 0 <= column < width:
            rates[column] = max(rates[column], per_s)
            held[column] = held[column] or bool(is_held)
    most = max(rates) or 1
    text = Text()
    for rate, is_held in zip(rates, held, strict=True):
        level = _LEVELS[round(rate / most * (len(_LEVELS) - 1))] if rate else (_LEVELS[0] if is_held else " ")
        text.append(level, style="red" if is_held else "green")
    return text


def as_json(state: State) -> str:
    names = ("at_ms", "cluster", "brokers", "total", "matched", "clients", "quotas", "faults")
    return json_text({name: getattr(state, name) for name in names})
