"""The public names of what fault rules do."""

from sluice import faults
from sluice.broker.faults.actions import KINDS


def test_every_action_can_be_imported_from_one_place() -> None:
    assert {name for name in faults.__all__ if name not in ("FaultError", "Rule")} == {
        action.__name__ for action in KINDS.values()
    }
    assert all(getattr(faults, action.__name__) is action for action in KINDS.values())
