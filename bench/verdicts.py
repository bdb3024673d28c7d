"""The lines of a table of measured values and targets."""


class Verdicts:
    """The lines of the table, each with a target."""

    def __init__(self) -> None:
        self.missed = 0

    def add(self, name: str, measured: str, target: str, reached: bool) -> None:
        """Print a line."""
        self.missed += not reached
        print(f"{name:<44} {measured:>34}  {target:<26} {'ok' if reached else 'MISSED'}", flush=True)
