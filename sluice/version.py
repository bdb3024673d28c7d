"""The version of sluice."""

try:
    from ._version import __version__ as __version__  # written by a build or an installation, from the tag
except ImportError:  # a checkout that was never installed
    __version__ = "0.1.0.dev0"
