"""Processes in which a set of strings has the same order each time; aiokafka iterates over some."""

import os
import subprocess
import sys


def start(module: str, call: str) -> subprocess.Popen[str]:
    """Start a process that prints the result of a call of a function of a module."""
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-c", f"import {module} as module; print(module.{call})"]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
