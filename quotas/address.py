"""Normalized IP addresses, by which connections and quotas are compared."""

from ipaddress import IPv6Address, ip_address


def normal_address(name: str) -> str | None:
    """Return the address as `ipaddress` writes it, an IPv4-mapped one as IPv4 (like Java); None if it is invalid.

    `localhost` is the only accepted host name: resolving any other would block all clients.
    """
    try:
        address = ip_address("127.0.0.1" if name == "localhost" else name)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
