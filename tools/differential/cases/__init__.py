"""The cases: one module for each kind of difference that was looked for."""
