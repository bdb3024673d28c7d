"""Spark jobs over the journal, run by PySpark: the one package that imports it (extra `spark`).

PySpark is imported inside the functions that use it, never when a module is: without the extra every module here can
still be imported, and says what is missing when it is used.
"""
