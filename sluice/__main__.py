"""`python -m sluice` and the `sluice` command."""


def main() -> None:
    """Runs the command line; exits with 0 (stopped cleanly), 1 (could not run) or 2 (wrong usage)."""
    from sluice.cli.main import cli

    cli(prog_name="sluice")


if __name__ == "__main__":
    main()
