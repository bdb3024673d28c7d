"""Spark jobs over the journal, run by PySpark: the one package that imports it (extra `spark`).

`session` and what it imports can be imported without PySpark, and say what is missing; the other modules need it.
"""
