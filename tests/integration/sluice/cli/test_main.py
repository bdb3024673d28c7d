"""`sluice --help` imports no command."""

import subprocess
import sys

# The main command, shared code of all commands, and their help texts.
LIGHT = [
    "sluice._version",
    "sluice.cli",
    "sluice.cli.commands",
    "sluice.cli.help_pages",
    "sluice.cli.main",
    "sluice.errors",
    "sluice.text",
    "sluice.text.error_text",
    "sluice.version",
]


def test_help_imports_no_command() -> None:
    code = "import sys; from sluice.cli.main import cli; cli(['--help'], standalone_mode=False)\n"
    code += "print(sorted(name for name in sys.modules if name.startswith('sluice.') or name == 'asyncio'))"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == str(LIGHT)
