"""sluice: a Kafka-compatible test broker that makes clients wait, on purpose and with proof.

The packages stand as folders at the top of the repository and are imported as `sluice.<folder>`. In a checkout
`sluice/<folder>` is a link to them, in a wheel the folder itself. Where links did not survive (a zip download, a clone
without symlinks), the repository's root is added to where this package looks for its parts.
"""

from pathlib import Path

__version__ = "0.1.0"

_here = Path(__file__).parent
if not (_here / "protocol" / "__init__.py").exists():
    __path__.append(str(_here.parent))
del _here
