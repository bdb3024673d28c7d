"""Applications with a classical bug, and their fixed versions, for `sluice.explore`."""
