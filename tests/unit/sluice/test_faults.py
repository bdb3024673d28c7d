"""Public names of fault actions."""

from sluice import faults
from sluice.broker.faults.actions import KINDS


def test_every_action_is_importable_from_sluice_faults() -> None:
    assert {name for name in faults.__all__ if name not in ("FaultError", "Rule")} == {
        action.__name__ for action in KINDS.values()
    }
    assert all(getattr(faults, action.__name__) is action for action in KINDS.values())
