"""The web page of the admin port: what the brokers do, for people, while they do it.

Who starts brokers hands `load` to them. It is called when someone first connects to the admin port, and imports all of
this then, so that neither a start nor a running client waits for it.
"""

from sluice.broker.admin.server import Page


def load() -> "Page":
    """What the admin port serves of the page."""
    from .routes import page

    return page
