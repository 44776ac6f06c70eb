"""The Python blocks of the documents run, in order, in one program for each document."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[3] / "docs"
LONG = ("Training", "PyTorch", "Experiments at scale")


def blocks(name: str) -> list[tuple[str, str]]:
    """Returns the heading and the text of each block of Python."""
    found, heading = [], ""
    for part in re.split(r"^(#+ [^\n]*|```python\n.*?^```)$", (DOCS / name).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL):
        if part.startswith("#"):
            heading = part.lstrip("# ")
        elif part.startswith("```python"):
            found.append((heading, part[len("```python\n") : -len("```")]))
    return found


def run(name: str, wanted: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.chdir(folder)
    space: dict[str, Any] = {"__name__": "documents"}
    exec("import temponet\nfrom temponet import TaskSet", space)
    chosen = [(heading, text) for heading, text in blocks(name) if wanted(heading)]
    for heading, text in chosen:
        exec(compile(text, f"{name}: {heading}", "exec"), space)
    return len(chosen)


def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("python.md", lambda heading: heading not in LONG, tmp_path, monkeypatch) >= 6


@pytest.mark.long
def test_long_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("python.md", lambda heading: heading in LONG, tmp_path, monkeypatch) == 2
    assert run("scale.md", lambda heading: True, tmp_path, monkeypatch) >= 1
