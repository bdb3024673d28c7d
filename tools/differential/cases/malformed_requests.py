"""Requests that are malformed, or encoded in an unusual way: which ones Kafka answers, and with which bytes."""

from tools.differential.case import case
from tools.differential.session import Session

_SASL_HANDSHAKE, _API_VERSIONS, _LIST_REASSIGNMENTS = 17, 18, 46
_CLIENT_ID = b"\0\3old"


def _request(api_key: int, version: int, body: bytes, client_id: bytes = _CLIENT_ID, tags: bytes = b"") -> bytes:
    header = api_key.to_bytes(2) + version.to_bytes(2, signed=True) + b"\xff\0\0\1"
    return header + client_id + tags + body


def _handshake(body: bytes, client_id: bytes = _CLIENT_ID) -> bytes:
    return _request(_SASL_HANDSHAKE, 1, body, client_id)


def _versions(body: bytes, version: int = 3, tags: bytes = b"\0") -> bytes:
    return _request(_API_VERSIONS, version, body, tags=tags)


def _reassignments(body: bytes) -> bytes:
    return _request(_LIST_REASSIGNMENTS, 0, body, tags=b"\0")


# The name of a mechanism, which is refused without SASL; names and versions of software, which are invalid.
_FRAMES = {
    "empty": b"",
    "one byte": b"\0",
    "no client id": _request(_SASL_HANDSHAKE, 1, b"", b""),
    "half a client id": _request(_SASL_HANDSHAKE, 1, b"", b"\0\7old"),
    "null client id": _handshake(b"\0\1x", b"\xff\xff"),
    "client id of -2 characters": _handshake(b"\0\1x", b"\xff\xfe"),
    "client id that is not UTF-8": _handshake(b"\0\1x", b"\0\1\xff"),
    "negative version": _request(_SASL_HANDSHAKE, -1, b"\0\1x"),
    "negative version of ApiVersions": _request(_API_VERSIONS, -1, b""),
    "empty string": _handshake(b"\0\0"),
    "null string": _handshake(b"\xff\xff"),
    "string of -2 characters": _handshake(b"\xff\xfe"),
    "string that is too long": _handshake(b"\0\2x"),
    "string that is not UTF-8": _handshake(b"\0\1\xff"),
    "bytes after the request": _handshake(b"\0\1x" + bytes(9)),
    "software": _versions(b"\2!\2!\0"),
    "bytes after software": _versions(b"\2!\2!\0" + bytes(9)),
    "null software": _versions(b"\0\2!\0"),
    "software without tags": _versions(b"\2!\2!"),
    "length in three bytes": _versions(b"\x82\x80\0!\2!\0"),
    "length in six bytes": _versions(b"\x82\x80\x80\x80\x80\0!\2!\0"),
    "length above the limit": _versions(b"\x81\x80\x04!\2!\0"),
    "unknown tags": _versions(b"\2!\2!\2\5\1a\7\0"),
    "a tag twice": _versions(b"\2!\2!\2\5\1a\5\1a"),
    "tags in reverse": _versions(b"\2!\2!\2\7\1a\5\1a"),
    "a tag that is too long": _versions(b"\2!\2!\1\5\7a"),
    "more tags than bytes": _versions(b"\2!\2!\x7f"),
    "tags of the header": _versions(b"\2!\2!\0", tags=b"\1\5\1a"),
    "cluster without a node": _versions(b"\2a\2a\2a\xff\xff\xff\xff\0", 5),
    "node without a cluster": _versions(b"\2a\2a\0\0\0\0\0\0", 5),
    "another cluster, software": _versions(b"\2!\2a\2a\0\0\0\0\0", 5),
    "another cluster": _versions(b"\2a\2a\2a\0\0\0\0\0", 5),
    "null array": _reassignments(bytes(4) + b"\0\0"),
    "null array in five bytes": _reassignments(bytes(4) + b"\x80\x80\x80\x80\0\0"),
    "more elements than bytes": _reassignments(bytes(4) + b"\x7f\0"),
    "array of 2147483646 elements": _reassignments(bytes(4) + b"\xff\xff\xff\xff\7\0"),
    "null string in an array": _reassignments(bytes(4) + b"\2\0\1\0\0"),
    "null array in an array": _reassignments(bytes(4) + b"\2\2t\0\0\0"),
}


@case(explained={"* string that is not UTF-8": "sluice closes the connection, which points to the client's mistake"})
def frames(session: Session) -> None:
    for name, data in _FRAMES.items():
        session.exchange(name, data)
