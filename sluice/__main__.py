"""`python -m sluice` and the `sluice` command."""

import gc
import os
import sys


def main() -> None:
    """Runs the command line; exits with 0 (stopped cleanly), 1 (could not run) or 2 (wrong usage)."""
    if sys.argv[1:2] == ["serve"] and _serve_at_once(sys.argv[2:]):
        return
    if "_SLUICE_COMPLETE" in os.environ:
        import sluice.cli.completion  # noqa: F401  (which has a word in how bash is answered)
    from sluice.cli.main import cli

    cli(prog_name="sluice")


def _serve_at_once(words: list[str]) -> bool:
    """Serves without click, which a start has no time for; False: it is for click to do, or to say what is wrong."""
    from sluice.cli.serve.arguments import read_plain

    arguments = read_plain(words)
    if arguments is None:
        return False
    gc.disable()  # until it serves: what is imported stays, and looking for garbage in it is a twentieth of a start
    from .errors import SluiceError

    try:
        from sluice.cli.serve.run import run_broker

        run_broker(arguments)
    except KeyboardInterrupt:  # before the broker took the signal over
        sys.exit(1)
    except SluiceError as error:
        from sluice.cli.main import fail

        fail(error)
    return True


if __name__ == "__main__":
    main()
