"""The process of a Python client, which speaks the protocol of tests/clients/external.py: `work` is its only verb."""

import json
import logging
import sys
import traceback
from collections.abc import Callable

import msgspec

from tools.lint.job import Job


class Call(msgspec.Struct):
    bootstrap: str
    given: Job


def serve(version: str, work: Callable[[str, Job], None]) -> None:
    """Print the version, and do the jobs of standard input until it ends."""
    logging.disable()
    print(json.dumps({"version": version}), flush=True)
    for line in sys.stdin:
        call = msgspec.json.decode(line, type=Call)
        try:
            work(call.bootstrap, call.given)
            answer: dict[str, object] = {"end": True}
        except Exception:  # the harness reports it
            answer = {"failure": traceback.format_exc()}
        print(json.dumps(answer), flush=True)
