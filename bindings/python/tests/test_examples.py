"""The examples run and say what they should."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *arguments: str, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run([sys.executable, str(EXAMPLES / name), *arguments], capture_output=True, text=True, env={**os.environ, **(environment or {})})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_overload(tmp_path: Path) -> None:
    said = run("overload.py", str(tmp_path))
    assert "at most 80.65% of the jobs" in said
    assert "edf         61.29%" in said and "temponet    80.65%" in said
    for name in ("edf.svg", "best.svg", "overload.svg"):
        assert ElementTree.parse(tmp_path / name).getroot().tag.endswith("svg")


@pytest.mark.long
def test_ray_sweep(tmp_path: Path) -> None:
    said = run("ray_sweep.py", "--sets", "20", "--jobs", "200", "--workers", "2", "--check", "--parquet", str(tmp_path / "rows.parquet"))
    assert "the same figures" in said and "100 sets in" in said
    assert (tmp_path / "rows.parquet").stat().st_size > 0
