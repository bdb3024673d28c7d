"""Spark jobs over the journal; the only package that imports PySpark (extra `spark`).

`session` can be imported without PySpark and then reports how to install it.
"""
