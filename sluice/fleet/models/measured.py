"""Models from an audit report: the backoffs that a client was seen to use (sluice/audit/judge/measured.py)."""

from pathlib import Path

import msgspec

from sluice.audit.judge.model.attempts import Kind
from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import AuditResult, Fit, MeasuredBackoff, SubjectResult
from sluice.errors import ConfigError
from sluice.text.error_text import unknown

from .client_model import ClientModel, config_name

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
