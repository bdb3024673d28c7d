"""Addresses in the one way of writing that connections and quotas are compared by."""

from ipaddress import IPv6Address, ip_address


def normal_address(name: str) -> str | None:
    """An address as `ipaddress` writes it, one of IPv4 in IPv6 as that of IPv4, which Java does; None for what is none.

    Of names only `localhost` is taken: looking up another one would keep all clients waiting.
    """
    try:
        address = ip_address("127.0.0.1" if name == "localhost" else name)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
