"""Runs the steps of a composite GitHub Action with bash, as a runner does, and checks outputs, summary and exit code.

Of the expressions of GitHub only `inputs.NAME` and `steps.ID.outputs.NAME` are known, and only in `env` and outputs: in
a script they would let an input be run.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import yaml

ACTION = pathlib.Path(".github/actions/schedulability").resolve()
EXPRESSION = re.compile(r"\$\{\{\s*(.+?)\s*\}\}")

FITS = """
[[task]]
name = "brake"
period = "10ms"
wcet = "4ms"
criticality = 1
[[task]]
name = "log"
period = "20ms"
wcet = "6ms"
"""
OVERLOADED = FITS.replace("6ms", "16ms")


class Run:
    """One use of the action with these inputs."""

    def __init__(self, program: str, files: dict[str, str], **given: str):
        action = yaml.safe_load((ACTION / "action.yml").read_text())
        inputs = {name: str(known.get("default", "")) for name, known in action["inputs"].items()}
        given = {name.replace("_", "-"): value for name, value in given.items()}
        assert set(given) <= set(inputs), given
        missing = [name for name, known in action["inputs"].items() if known.get("required") and name not in given]
        assert not missing, missing
        inputs |= given | {"program": program}
        steps: dict[str, dict[str, str]] = {}

        def value(expression: re.Match[str]) -> str:
            match expression[1].split("."):
                case ["inputs", name]:
                    return inputs[name]
                case ["steps", step, "outputs", name]:
                    return steps.get(step, {}).get(name, "")
            raise AssertionError(f"the expression {expression[1]} is not known here")

        self.code, self.log = 0, ""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                pathlib.Path(folder, name).write_text(text)
            with tempfile.TemporaryDirectory() as runner:
                summary = pathlib.Path(runner, "summary")
                summary.touch()
                for number, step in enumerate(action["runs"]["steps"]):
                    assert step["shell"] == "bash" and not EXPRESSION.search(step["run"]), step["name"]
                    output = pathlib.Path(runner, f"output-{number}")
                    output.touch()
                    script = pathlib.Path(runner, f"step-{number}.sh")
                    script.write_text(step["run"])
                    env = {name: EXPRESSION.sub(value, str(text)) for name, text in step["env"].items()}
                    env |= {
                        "GITHUB_ACTION_PATH": str(ACTION),
                        "GITHUB_OUTPUT": str(output),
                        "GITHUB_STEP_SUMMARY": str(summary),
                        "RUNNER_TEMP": runner,
                    }
                    # The command line that GitHub documents for `shell: bash`.
                    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
                    done = subprocess.run(command, cwd=folder, env=os.environ | env, capture_output=True, text=True)
                    self.log += done.stdout + done.stderr
                    lines = output.read_text().splitlines()
                    steps[step["id"]] = dict(line.split("=", 1) for line in lines)
                    if done.returncode:
                        self.code = done.returncode
                        break
                self.summary = summary.read_text()
            self.outputs = {name: EXPRESSION.sub(value, known["value"]) for name, known in action["outputs"].items()}
            self.files = {path.name: path.read_text() for path in pathlib.Path(folder).iterdir()}


def main() -> None:
    program = str(pathlib.Path(sys.argv[1]).resolve())

    held = Run(
        program,
        {"my set.toml": FITS},
        file="my set.toml",
        prove="edf\ncritical\n",
        fail_if="edf:met<100%\ntask.brake<100%\n",
        schedulers="edf,rm,temponet",
        options="--seed=3\n--horizon=400ms",
        report="page.html",
    )
    assert held.code == 0, held.log
    assert held.outputs["holds"] == "true" and held.outputs["best"] in {"edf", "rm", "temponet"}, held.outputs
    assert held.outputs["proof"].startswith("On 1 core every deadline is proved to be met under edf"), held.outputs
    assert held.outputs["verdict"].endswith("."), held.outputs
    assert "## Schedulability of my set: holds\n" in held.summary and "failed" not in held.summary, held.summary
    assert "| scheduler | critical met | met |\n|---|--:|--:|\n" in held.summary, held.summary
    assert "| edf | 100% | 100% |" in held.summary, held.summary
    assert held.files["page.html"].startswith("<!doctype html>"), held.files["page.html"][:80]

    failed = Run(
        program,
        {"set.toml": OVERLOADED},
        file="set.toml",
        prove="any\ncritical",
        fail_if="edf:met<100%",
        schedulers="edf,rm,temponet",
    )
    assert failed.code == 1 and failed.outputs["holds"] == "false", failed.log
    assert ": fails\n" in failed.summary, failed.summary
    assert "- **failed:** any: no scheduler is proved to meet every deadline\n" in failed.summary, failed.summary
    assert "- **failed:** edf:met<100%: met of edf is " in failed.summary, failed.summary
    assert "critical:" not in failed.summary, "the shield guarantees what is critical: " + failed.summary

    # Nothing that an input holds is run, and a wrong one is an error with its reason.
    for wrong, reason in [
        ({"file": "none.toml"}, "none.toml"),
        ({"file": "set.toml", "prove": "eddf"}, "did you mean"),
        ({"file": "set.toml", "fail_if": "$(touch ran); touch ran"}, "has none of"),
        ({"file": "set.toml", "schedulers": "`touch ran`"}, "touch ran"),
    ]:
        refused = Run(program, {"set.toml": FITS}, **wrong)
        assert refused.code == 2 and reason in refused.log, (refused.code, refused.log)
        assert set(refused.files) == {"set.toml"} and not refused.outputs["verdict"], refused.files
    print("the GitHub Action is fine")


main()
