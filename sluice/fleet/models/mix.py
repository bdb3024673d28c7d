"""Mixes of clients, written as `kafka-4.4:6000,kip-580-before:4000`, with settings such as `retry.backoff.ms=500`."""

from collections.abc import Sequence
from typing import Literal, get_origin

import msgspec

from sluice.errors import ConfigError
from sluice.text.error_text import unknown
from sluice.text.typed_decoding import DecodeError, read

from .client_model import ClientModel, Group
from .measured import read_model
from .presets import PRESETS

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
