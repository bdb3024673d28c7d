"""Mixes of clients, written as `kafka-4.4:6000,kip-580-before:4000`, with settings such as `retry.backoff.ms=500`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_origin

import msgspec

from sluice.audit.judge.model.attempts import Kind
from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import AuditResult, Fit, MeasuredBackoff, SubjectResult
from sluice.errors import ConfigError
from sluice.text.error_text import unknown
from sluice.text.typed_decoding import DecodeError, read

from .client_model import ClientModel, Group, config_name
from .presets import PRESETS

# The cap of a client whose waits had not stopped growing.
_NO_CAP_MS = 3_600_000
_SETTINGS = (
    "request_timeout_ms", "delivery_timeout_ms", "metadata_max_age_ms", "acks", "max_in_flight_requests_per_connection",
)  # fmt: skip


def read_model(reference: str) -> tuple[str, ClientModel]:
    """Return the name and the model of REPORT#CLIENT. Raises ConfigError."""
    path, _, name = reference.rpartition("#")
    where = f"--model {reference}"
    if not path or not name:
        raise ConfigError(f"{where}: expected REPORT#CLIENT, such as report.json#kafka-python")
    try:
        result = msgspec.json.decode(Path(path).read_bytes(), type=AuditResult)
    except OSError as error:
        raise ConfigError(f"{where}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise ConfigError(f"{where}: expected the report.json of `sluice audit run`; {error}") from None
    subjects = {each.subject.name: each for each in result.subjects}
    if name not in subjects:
        raise ConfigError(f"{where}: {unknown('client', name, list(subjects))}")
    return name, _model(where, subjects[name])


def _model(where: str, result: SubjectResult) -> ClientModel:
    found = {backoff.kind: backoff for backoff in result.backoffs}
    missing = [kind for kind in (Kind.PRODUCE, Kind.CONNECT) if kind not in found]
    if missing:
        raise ConfigError(f"{where}: the report has no measured backoff of {missing[0]} attempts")
    connect = found[Kind.CONNECT]
    values: dict[str, object] = {
        **_backoff(where, "retry", found[Kind.PRODUCE]),
        **_backoff(where, "reconnect", connect),
        "reconnect.backoff.scope": "client" if connect.is_shared else "broker",
        "retry.backoff.redraws": False,
    }
    if result.subject.role is Role.PRODUCER:
        given = {name: result.subject.settings.get(config_name(name)) for name in _SETTINGS}
        values |= {config_name(name): _setting(name, value) for name, value in given.items() if value is not None}
    try:
        return msgspec.convert(values, ClientModel)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}: the simulation does not have this backoff; {error}") from None


def _setting(name: str, value: float | str | bool) -> object:
    if name == "acks":
        return {"1": "1", "1.0": "1", "-1": "all"}.get(str(value), value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _backoff(where: str, name: str, measured: MeasuredBackoff) -> dict[str, object]:
    fit: Fit = measured.fit
    if fit.model == "linear":
        raise ConfigError(
            f"{where}: expected a constant or exponential backoff of {measured.kind} attempts, got linear"
        )
    is_constant = fit.model == "constant"
    cap_ms = _NO_CAP_MS if fit.cap_ms is None else fit.cap_ms
    return {
        f"{name}.backoff.ms": fit.base_ms,
        # A base equal to the maximum has no jitter.
        f"{name}.backoff.max.ms": fit.base_ms * (1 + fit.jitter) + 1e-6 if is_constant else cap_ms,
        f"{name}.backoff.multiplier": 1 if is_constant else fit.multiplier,
        f"{name}.backoff.jitter": fit.jitter,
    }


_MOST_CLIENTS = 10_000_000
_FIELDS = {field.encode_name: field for field in msgspec.structs.fields(ClientModel)}


def parse_mix(text: str, settings: Sequence[str] = (), measured: Sequence[str] = ()) -> list[Group]:
    """Return the groups of a mix.

    Args:
        text: MODEL:CLIENTS, separated by commas.
        settings: NAME=VALUE for all models, or MODEL.NAME=VALUE for one.
        measured: REPORT#CLIENT of audit reports; each adds or replaces the model CLIENT.

    Raises:
        ConfigError: An unknown model or setting, or an invalid number or value.
    """
    known = {**PRESETS, **dict(map(read_model, measured))}
    counts: dict[str, int] = {}
    for part in text.split(","):
        name, _, count = part.strip().partition(":")
        if name not in known:
            raise ConfigError(f"--fleet {part.strip()}: {unknown('model', name, list(known))}")
        if not (count.isascii() and count.isdigit() and int(count[:9]) > 0 and int(count) <= _MOST_CLIENTS):
            got = count or "nothing"
            raise ConfigError(f"--fleet {name}: expected MODEL:CLIENTS with 1 to {_MOST_CLIENTS} clients, got {got}")
        if name in counts:
            raise ConfigError(f"--fleet {name}: expected each model once")
        counts[name] = int(count)
    models = {name: known[name] for name in counts}
    for setting in settings:
        _apply(setting, models)
    return [Group(name, models[name], clients) for name, clients in counts.items()]


def _apply(setting: str, models: dict[str, ClientModel]) -> None:
    key, equals, text = setting.partition("=")
    if not equals:
        raise ConfigError(f"--set {setting}: expected NAME=VALUE or MODEL.NAME=VALUE")
    model = next((name for name in models if key.startswith(f"{name}.")), None)
    name = key if model is None else key.removeprefix(f"{model}.")
    if name not in _FIELDS:
        raise ConfigError(f"--set {setting}: {unknown('setting', name, sorted(_FIELDS))}")
    value = _value(setting, text, _FIELDS[name].type)
    for chosen in models if model is None else (model,):
        models[chosen] = msgspec.structs.replace(models[chosen], **{_FIELDS[name].name: value})


def _value(setting: str, text: str, accepted: type[object]) -> object:
    try:
        return read(text if get_origin(accepted) is Literal else msgspec.json.decode(text), accepted)
    except msgspec.DecodeError:
        problem = f"expected a number, true, false or null, got {text}"
    except DecodeError as error:
        problem = error.problem
    raise ConfigError(f"--set {setting}: {problem}")
