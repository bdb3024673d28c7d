"""`python -m sluice` and the `sluice` command."""

import gc
import os
import sys

from sluice.errors import SluiceError


def main() -> None:
    """Runs the command line; exits with 0 (stopped cleanly), 1 (could not run) or 2 (wrong usage)."""
    if sys.argv[1:2] == ["serve"] and _serve_without_click(sys.argv[2:]):
        return
    if "_SLUICE_COMPLETE" in os.environ:
        import sluice.cli.completion  # noqa: F401  (which has a word in how bash is answered)
    from sluice.cli.main import cli

    cli(prog_name="sluice")


def _serve_without_click(arguments: list[str]) -> bool:
    """Serve without importing click, for a faster start; return False if only click can read the arguments."""
    from sluice.cli.serve.arguments import read_plain

    plain = read_plain(arguments)
    if plain is None:
        return False
    gc.disable()  # until it serves: what is imported stays, and looking for garbage in it is a twentieth of a start
    try:
        from sluice.cli.serve.run import run_broker

        run_broker(plain)
    except KeyboardInterrupt:  # before the broker took the signal over
        sys.exit(1)
    except SluiceError as error:
        from sluice.cli.main import fail

        fail(error)
    return True


if __name__ == "__main__":
    main()
