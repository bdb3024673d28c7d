"""Coverage-guided fuzzing with atheris: `python -m tools.fuzz TARGET SECONDS`.

`all SECONDS` runs one target after the other, `run TARGET --hex BYTES` repeats one input. The corpus and the inputs
that found a defect are kept in `build/fuzz/TARGET`. Any option of libFuzzer may follow the seconds, such as
`-minimize_crash=1 FILE`.

`campaign TARGET INPUTS SEED` runs many inputs of `frames` or `responses`, without guidance, and measures memory and
delays.
"""

import subprocess
import sys
from pathlib import Path

USAGE = (
    "usage: python -m tools.fuzz (TARGET | all) SECONDS [libFuzzer option]... | run TARGET (FILE | --hex BYTES)"
    " | campaign (frames | responses) INPUTS SEED"
)


def main(arguments: list[str]) -> None:
    if len(arguments) in (3, 4) and arguments[0] == "run":
        from tools.fuzz.targets import run

        run(arguments[1], bytes.fromhex(arguments[3]) if arguments[2] == "--hex" else Path(arguments[2]).read_bytes())
        return
    if len(arguments) == 4 and arguments[0] == "campaign":
        from tools.fuzz.campaign import campaign

        sys.exit(campaign(arguments[1], int(arguments[2]), int(arguments[3])))
    if len(arguments) < 2 or not arguments[1].isdecimal():
        sys.exit(USAGE)
    if arguments[0] == "all":  # atheris ends the process
        from tools.fuzz.targets import TARGETS

        for target in TARGETS:
            subprocess.run([sys.executable, "-m", "tools.fuzz", target, *arguments[1:]], check=True)
        return
    _fuzz(arguments[0], int(arguments[1]), arguments[2:])


def _fuzz(target: str, seconds: int, options: list[str]) -> None:
    import atheris

    with atheris.instrument_imports(include=["sluice"]):
        from tools.fuzz import targets
    if target not in targets.TARGETS:
        sys.exit(f"{target}: unknown target; expected one of {', '.join(targets.TARGETS)}")
    folder = Path("build", "fuzz", target)
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(targets.seeds(target)):
        (corpus / f"seed-{number}").write_bytes(data)
    limits = [f"-max_total_time={seconds}", "-rss_limit_mb=2048", "-timeout=10", "-max_len=20000"]
    atheris.Setup(
        [sys.argv[0], str(corpus), f"-artifact_prefix={folder}/", *limits, *options],
        lambda data: targets.run(target, data),
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
