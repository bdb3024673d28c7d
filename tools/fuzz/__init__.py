"""Fuzzing of everything that a stranger can send or a disk can return.

`targets.py` has one function for each kind of input; it accepts any bytes, and raises only for a defect. `make test`
runs each with its seeds and some random changes of them; the campaign `fuzz` runs them guided by coverage (atheris). An
input that found a defect is kept in `findings/<target>/` and becomes a seed.
"""
