"""Holds `temponet schema` against the Python package jsonschema: built-in sets and the template are valid, wrong values are not.

    pip install jsonschema
    python bench/peers/jsonschema_task_sets.py target/release/temponet
"""

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from jsonschema import Draft202012Validator

WRONG = [
    {"cores": 0},
    {"on_miss": "maybe"},
    {"unheard_of": 1},
    {"task": [{"name": "a", "period": 10}]},
    {"task": [{"name": "a", "wcet": 1}]},
    {"task": [{"name": "a", "period": "10 parsec", "wcet": 1}]},
    {"task": [{"name": "a", "period": 10, "wcet": "0ms"}]},
    {"task": [{"name": "a", "period": 10, "wcet": 1, "overrun": 1.5}]},
    {"task": [{"name": "a", "period": 10, "wcet": 1, "execution": {"model": "normal"}}]},
    {"task": [{"name": "a", "period": 10, "wcet": 1, "section": [{"resource": "bus"}]}]},
]


def main(program: str) -> None:
    def run(*arguments: str) -> str:
        return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout

    schema = json.loads(run("schema"))
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    names = [built_in["name"] for built_in in json.loads(run("sets", "--json"))["sets"]]
    for name in names:
        validator.validate(tomllib.loads(run("sets", name)))
        validator.validate(json.loads(run("sets", name, "--json")))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "new.toml"
        run("new", str(path))
        validator.validate(tomllib.loads(path.read_text()))
    for change in WRONG:
        file = {"task": [{"name": "a", "period": 10, "wcet": 1}], **change}
        assert not validator.is_valid(file), file
    print(f"{len(names)} built-in sets and the template are valid, {len(WRONG)} wrong files are not")


main(sys.argv[1])
