"""Values as readable JSON."""

import msgspec


def json_text(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
