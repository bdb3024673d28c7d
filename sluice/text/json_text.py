"""Values as readable JSON."""

import re

import msgspec

# C1 controls and DEL, and the invisible characters that reorder or hide text; JSON itself escapes the C0 controls.
_HIDDEN = re.compile("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def json_text(value: object) -> str:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
