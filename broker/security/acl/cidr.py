"""Ranges of addresses as hosts of entries, in CIDR notation. Follows CidrUtils and SubnetUtils of Kafka 4.4.

Unlike there, no name is resolved.
"""

import re
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

_IPV4 = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_LARGEST = (255, 255, 255, 255, 32)
_IPV6_BITS = 128
_PREFIXES = 1024  # that stay parsed


def cidr_problem(notation: str) -> str | None:
    """Return why a host with a slash is not a range, or None."""
    if ":" in notation:
        return _ipv6_problem(notation)
    found = _IPV4.fullmatch(notation)
    if found is None:
        return f"Could not parse [{notation}]"
    values = zip(map(int, found.groups()), _LARGEST, strict=True)
    return next((f"Value [{value}] not in range [0,{most}]" for value, most in values if value > most), None)


def _ipv6_problem(notation: str) -> str | None:
    address, _, prefix = notation.partition("/")
    if re.fullmatch(r"[+-]?[0-9]+", prefix) is None:
        return f"Could not parse [{notation}] - invalid prefix length"
    if not 0 <= int(prefix) <= _IPV6_BITS:
        return f"Could not parse [{notation}] - prefix length must be between 0 and {_IPV6_BITS}"
    try:
        parsed = IPv6Address(address)
    except ValueError:
        return f"Could not parse [{address}]"
    return None if parsed.ipv4_mapped is None else f"Could not parse [{address}] - not an IPv6 address"


def is_in_range(host: str, notation: str) -> bool:
    """Return whether an entry with this host applies to a client's address."""
    if "/" not in notation or (network := _network(notation)) is None:
        return False
    address = ip_address(host)
    return int(address) != 0 and address in network


@lru_cache(_PREFIXES)
def _network(notation: str) -> IPv4Network | IPv6Network | None:
    if cidr_problem(notation) is not None:
        return None
    address, _, prefix = notation.partition("/")
    if ":" not in address:  # zeros at the start of numbers are valid here
        address = ".".join(str(int(number)) for number in address.split("."))
    return ip_network(f"{address}/{int(prefix)}", strict=False)
