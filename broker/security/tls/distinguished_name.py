"""The subject of a certificate, as Java's `X500Principal.getName()` writes it: RFC 2253.

Kafka's users by certificate are these strings, so they are the same to the character: the last name comes first, only
the nine keywords of RFC 2253 are written as words, and a value of any other attribute is the hexadecimal DER of it
(an e-mail address is `1.2.840.113549.1.9.1=#1612...`). As much of DER is read as leads there; the certificate is one
that OpenSSL has read before. Python's own `getpeercert()` does not return the type of a string. `cryptography`
decodes a BMPString as UTF-16, and raises for a GeneralString and for invalid UTF-8, where Java has a name.
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
# The tags of strings that Java writes as such; whatever the encoding of one is, it is taken for UTF-8.
_STRINGS = frozenset({12, 19, 20, 22, 27, 30})
_ESCAPED = frozenset(',=+<>#;"\\')
_BLANKS = " \r"
_VERSION_TAG = 0xA0
# In a certificate: serial number, algorithm, issuer and validity stand before the subject.
_FIELDS_BEFORE_SUBJECT = 4

_Value = tuple[int, bytes, bytes]  # tag, content, and the whole with both


def subject(certificate: bytes) -> str:
    """The subject of a certificate (DER) in the form of RFC 2253."""
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
        if length >= 0x80:  # then it is the number of bytes that the length has
            start += length - 0x80
            length = int.from_bytes(der[position + 2 : start])
        yield tag, der[start : start + length], der[position : start + length]
        position = start + length
