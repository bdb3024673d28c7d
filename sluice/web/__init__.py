"""The web page of the admin port, a live view of the brokers.

The brokers call `load` on the first connection to the admin port. It imports the package only then, because the import
would delay the start.
"""

from sluice.broker.admin.server import Page


def load() -> "Page":
    """Return the page for the admin port to serve."""
    from .routes import page

    return page
