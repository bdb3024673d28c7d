"""Random changes of an input, without knowledge of its format."""

from collections.abc import Sequence
from random import Random

# Lengths and counts at the limits of their types, in the encodings of the protocol.
_INTERESTING = [
    *(value.to_bytes(4, signed=True) for value in (-1, 0, 1, 2**31 - 1, -(2**31), 1_000_001)),
    *(value.to_bytes(2, signed=True) for value in (-1, 0, 2**15 - 1, -(2**15))),
    b"\xff\xff\xff\xff\x0f",  # the largest unsigned varint
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # the largest varlong
    b"\x80\x80\x80\x80\x80\x80",  # a varint that does not end
    b"\xf4\x90\x80\x80",  # above the last code point
    b"\xed\xa0\x80",  # a surrogate
    b"\0",
]
_MOST_CHANGES = 4
_MOST_BYTES = 64


def mutated(data: bytes, others: Sequence[bytes], random: Random) -> bytes:
    """Return `data` with one to four changes; parts of `others` may be inserted."""
    result = bytearray(data)
    for _ in range(random.randint(1, _MOST_CHANGES)):
        at = random.randrange(len(result) + 1)
        length = random.randint(1, _MOST_BYTES)
        match random.randrange(6):
            case 0 if at < len(result):
                result[at] ^= 1 << random.randrange(8)
            case 1:
                value = random.choice(_INTERESTING)
                result[at : at + len(value)] = value
            case 2:
                result[at:at] = random.randbytes(length)
            case 3:
                del result[at : at + length]
            case 4:
                result[at:at] = result[at : at + length]
            case _:
                other = random.choice(others)
                begin = random.randrange(len(other) + 1)
                result[at : at + length] = other[begin : begin + length]
    return bytes(result)
