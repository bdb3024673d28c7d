"""`python -m sluice` and the `sluice` command."""

import os

from sluice.cli.main import cli


def main() -> None:
    """Run the command line; exit with 0 (success), 1 (failure) or 2 (wrong usage)."""
    if "_SLUICE_COMPLETE" in os.environ:
        import sluice.cli.completion  # noqa: F401  (registers sluice's completion class for bash)

    cli(prog_name="sluice")


if __name__ == "__main__":
    main()
