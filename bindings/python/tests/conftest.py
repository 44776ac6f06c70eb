"""The command line, whose figures the package must have."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest


class Command:
    """The command `temponet`."""

    def __init__(self, path: str, folder: Path) -> None:
        self.path, self.folder = path, folder

    def json(self, *arguments: str) -> Any:
        """Runs a command with --json and returns what it prints."""
        done = subprocess.run([self.path, *arguments, "--json"], cwd=self.folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([self.path, *arguments], cwd=self.folder, capture_output=True, text=True)


@pytest.fixture
def command(tmp_path: Path) -> Command:
    path = os.environ.get("TEMPONET_CLI") or shutil.which("temponet")
    if path is None:
        pytest.fail("TEMPONET_CLI does not name the command temponet; ./test builds it")
    return Command(path, tmp_path)
