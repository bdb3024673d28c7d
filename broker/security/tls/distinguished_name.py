"""The subject of a certificate in the format of Java's `X500Principal.getName()` (RFC 2253).

Kafka uses this string as the principal, so it must match exactly: relative names in reverse order, only the nine
keywords of RFC 2253 as words, and the value of any other attribute as hexadecimal DER (an e-mail address is
`1.2.840.113549.1.9.1=#1612...`). The parser is minimal, because OpenSSL has validated the certificate. Python's
`getpeercert()` omits the type of a string; `cryptography` raises for strings for which Java has a name.
"""

from collections.abc import Iterator

_KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
# The tags of types that Java prints as text; Java decodes all of them as UTF-8.
_STRINGS = frozenset({12, 19, 20, 22, 27, 30})
_ESCAPED = frozenset(',=+<>#;"\\')
_BLANKS = " \r"
_VERSION_TAG = 0xA0
_FIELDS_BEFORE_SUBJECT = 4

_Value = tuple[int, bytes, bytes]


def subject(certificate: bytes) -> str:
    to_be_signed = next(_values(_content(certificate)))
    fields = [field for field in _values(to_be_signed[1]) if field[0] != _VERSION_TAG]
    names = list(_values(fields[_FIELDS_BEFORE_SUBJECT][1]))
    return ",".join("+".join(map(_attribute, _values(content))) for _, content, _ in reversed(names))


def _attribute(attribute: _Value) -> str:
    (_, oid, _), (tag, content, whole) = _values(attribute[1])
    dotted = _dotted(oid)
    keyword = _KEYWORDS.get(dotted)
    if keyword is None or tag not in _STRINGS:
        return f"{keyword or dotted}=#{whole.hex()}"
    return f"{keyword}={_escape(content.decode(errors='replace'))}"


def _escape(text: str) -> str:
    escaped = "".join(f"\\{char}" if char in _ESCAPED else char for char in text).replace("\0", "\\00")
    inner = escaped.strip(_BLANKS)
    start = escaped.find(inner)
    before, after = escaped[:start], escaped[start + len(inner) :]
    return "".join(f"\\{char}" for char in before) + inner + "".join(f"\\{char}" for char in after)


def _dotted(oid: bytes) -> str:
    numbers = [0]
    for byte in oid:
        numbers[-1] = numbers[-1] << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(0)
    first = min(numbers[0] // 40, 2)
    return ".".join(str(number) for number in (first, numbers[0] - 40 * first, *numbers[1:-1]))


def _content(der: bytes) -> bytes:
    return next(_values(der))[1]


def _values(der: bytes) -> Iterator[_Value]:
    position = 0
    while position < len(der):
        tag, length, start = der[position], der[position + 1], position + 2
        if length >= 0x80:
            start += length - 0x80
            length = int.from_bytes(der[position + 2 : start])
        yield tag, der[start : start + length], der[position : start + length]
        position = start + length
