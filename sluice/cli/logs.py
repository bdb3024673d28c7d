"""Log lines on stderr as `text` or `json`, one per event. Fields come from a record's `extra`."""

import json
import logging
import sys
from datetime import UTC, datetime

# Attributes of any LogRecord; others come from `extra`.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: value for name, value in vars(record).items() if name not in _STANDARD}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _where(record: logging.LogRecord) -> dict[str, object]:
    # An internal error is one line, too, with the location of its exception.
    if not record.exc_info or record.exc_info[1] is None:
        return {}
    error, trace = record.exc_info[1], record.exc_info[2]
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
    return {"error": f"{type(error).__name__}: {error}", "at": place}


class TextFormatter(logging.Formatter):
    """Lines like `2026-01-01T00:00:00.000Z WARNING sluice.broker: connection closed peer=[::1]:4711 reason="..."`."""

    def format(self, record: logging.LogRecord) -> str:
        words = [f"{_time(record)} {record.levelname} {record.name}: {record.getMessage()}"]
        words += [f"{name}={_quote(value)}" for name, value in (_fields(record) | _where(record)).items()]
        return " ".join(words)


class JsonFormatter(logging.Formatter):
    """One JSON object per line: `time`, `level`, `logger`, `message` and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        return _json(line | _fields(record) | _where(record))


def _quote(value: object) -> str:
    text = str(value)
    plain = text and text.isprintable() and not any(c in ' "=' for c in text)
    return text if plain else _json(text)


def _json(value: object) -> str:
    """Escape everything but ASCII: lines may contain text from clients."""
    return json.dumps(value, default=str)


def set_up_logging(log_format: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # The broker already logs the start and stop of its HTTP server.
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)
