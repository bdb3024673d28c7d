"""The same requests to Apache Kafka 4.4 and to sluice, and their responses field by field.

A case (`case.py`) is a function that sends requests through a `Session`, which keeps each response with ids and times
masked. Cases are in `cases/`; `answers/` has what Apache Kafka answered, written by

    python -m tools.differential --write [PATTERN...]    # needs Java and Maven

`make test` compares sluice with these answers (`test_answers.py`), in memory and on disk; the campaign `differential`
compares both with each other again, so that an outdated answer is found.
"""
