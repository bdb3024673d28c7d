"""Self-contained HTML reports: templates of a package that extend this package's `base.html`."""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def environment(package: str) -> Environment:
    loader = ChoiceLoader([PackageLoader(package), PackageLoader("sluice.text")])
    return Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
