"""``python -m chaos``: run chaos, and write a report. Exit code 1: a promise was not kept."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from chaos.plot import draw
from chaos.report import render
from chaos.run import run

_ROOT = Path(__file__).parents[2]


def main() -> int:
    options = _parse()
    if options.logs is not None:
        options.logs.mkdir(parents=True)
        done = run(options.logs, options.seed, options.duration)
    else:
        with tempfile.TemporaryDirectory(prefix="dtq-chaos-") as folder:
            done = run(Path(folder), options.seed, options.duration)
    options.plot.parent.mkdir(parents=True, exist_ok=True)
    options.plot.write_bytes(draw(done))
    plot = Path(os.path.relpath(options.plot, options.report.parent)).as_posix()
    options.report.write_text(render(done, plot), "utf-8")
    print(f"{options.report}: {'every promise was kept' if done.verdict.good else 'see there'}")
    return 0 if done.verdict.good else 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="chaos", description=__doc__)
    parser.add_argument("--duration", type=float, default=60, help="seconds of faults")
    parser.add_argument("--seed", type=int, default=1, help="what faults and load are drawn from")
    parser.add_argument("--report", type=Path, default=_ROOT / "docs/chaos-report.md")
    parser.add_argument("--plot", type=Path, default=_ROOT / "docs/images/chaos.svg")
    parser.add_argument("--logs", type=Path, help="a new folder that keeps the logs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
