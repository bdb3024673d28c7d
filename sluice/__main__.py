"""`python -m sluice` and the `sluice` command."""

import gc
import os
import sys

from sluice.errors import SluiceError


def main() -> None:
    """Run the command line; exit with 0 (success), 1 (failure) or 2 (wrong usage)."""
    if sys.argv[1:2] == ["serve"] and _serve_without_click(sys.argv[2:]):
        return
    if "_SLUICE_COMPLETE" in os.environ:
        import sluice.cli.completion  # noqa: F401  (registers sluice's completion class for bash)
    from sluice.cli.main import cli

    cli(prog_name="sluice")


def _serve_without_click(arguments: list[str]) -> bool:
    """Serve without click, for a faster start; return False if only click can read them."""
    from sluice.cli.serve.arguments import read_plain

    plain = read_plain(arguments)
    if plain is None:
        return False
    gc.disable()  # until it serves: imported objects stay, and collections would take 5 % of the start
    try:
        from sluice.cli.serve.deferred_modules import defer_modules

        defer_modules()
        from sluice.cli.serve.run import run_broker

        run_broker(plain)
    except KeyboardInterrupt:  # before the broker handles the signal
        sys.exit(1)
    except SluiceError as error:
        from sluice.cli.main import fail

        fail(error)
    return True


if __name__ == "__main__":
    main()
