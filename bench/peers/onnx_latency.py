"""Compares the network's forward pass with ONNX Runtime on the same weights and rows, both on one thread.

    pip install numpy onnx onnxruntime safetensors
    cargo build --release
    python3 bench/peers/onnx_latency.py [--jobs 64,200,600] [--passes 300]

`temponet bench infer` writes the weights and rows. The script builds the same network as an ONNX graph, checks that both give the same
outputs, and prints the median times and their ratio. ONNX Runtime is timed twice: on all rows, as an exported network would run, and on the
distinct rows with their multiplicities as an attention bias, as TempoNet does.
"""

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
from onnx import TensorProto, checker, helper, numpy_helper
from safetensors import safe_open

ROOT = Path(__file__).resolve().parents[2]
TEMPONET = ROOT / "target" / "release" / "temponet"
EPSILON = 1e-5
CLOSE = 1e-4


class Graph:
    """Builder of an ONNX graph; every operation returns the name of its result."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, value, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype=dtype), name))
        return name

    def op(self, kind, *inputs, **attributes):
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def linear(self, x, weight, bias):
        return self.op("Add", self.op("MatMul", x, self.constant(weight.T)), self.constant(bias))


def build(weights, architecture):
    d, heads = architecture["width"], architecture["heads"]
    size = d // heads
    graph = Graph()
    op = graph.op
    idle = [
        op("Gather", graph.constant(weights[f"embed.idle.{feature['name']}"]), f"idle_{place}")
        for place, feature in enumerate(architecture["idle"])
    ]
    jobs = op("Gather", graph.constant(weights["embed.job.slack"]), "slack")
    x = op("Concat", op("Add", *idle), jobs, axis=0)
    by_head = graph.constant([-1, heads, size], np.int64)
    flat = graph.constant([-1, d], np.int64)
    for layer in range(architecture["layers"]):
        part = lambda name: weights[f"layers.{layer}.{name}"]
        linear = lambda name, x: graph.linear(x, part(f"{name}.weight"), part(f"{name}.bias"))
        norm = lambda name, x: op(
            "LayerNormalization", x, graph.constant(part(f"{name}.weight")), graph.constant(part(f"{name}.bias")),
            axis=-1, epsilon=EPSILON,
        )
        split = lambda name, order: op("Transpose", op("Reshape", linear(f"attention.{name}", x), by_head), perm=order)
        query, key, value = split("query", [1, 0, 2]), split("key", [1, 2, 0]), split("value", [1, 0, 2])
        logits = op("Mul", op("MatMul", query, key), graph.constant(1 / np.sqrt(size)))
        shares = op("Softmax", op("Add", logits, "bias"), axis=-1)
        mixed = op("Reshape", op("Transpose", op("MatMul", shares, value), perm=[1, 0, 2]), flat)
        x = norm("attention_norm", op("Add", x, linear("attention.output", mixed)))
        hidden = op("Relu", linear("feed_forward.up", x))
        x = norm("feed_forward_norm", op("Add", x, linear("feed_forward.down", hidden)))
    for kind in ("idle", "job"):
        weight = weights[f"head.{kind}.weight"].reshape(1, d)
        graph.nodes.append(helper.make_node(
            "Add", [op("MatMul", x, graph.constant(weight.T)), graph.constant(weights[f"head.{kind}.bias"])], [f"q_{kind}"]
        ))
    inputs = [helper.make_tensor_value_info("slack", TensorProto.INT64, ["jobs"])]
    inputs += [helper.make_tensor_value_info(f"idle_{place}", TensorProto.INT64, [1]) for place in range(len(idle))]
    inputs += [helper.make_tensor_value_info("bias", TensorProto.FLOAT, ["rows"])]
    outputs = [helper.make_tensor_value_info(f"q_{kind}", TensorProto.FLOAT, ["rows", 1]) for kind in ("idle", "job")]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "temponet", inputs, outputs, graph.constants),
        opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
    )
    checker.check_model(model)
    return model.SerializeToString()


def run(session, idle, slack, bias):
    feed = {f"idle_{place}": np.array([value], np.int64) for place, value in enumerate(idle)}
    feed |= {"slack": np.array(slack, np.int64), "bias": np.array(bias, np.float32)}
    first, others = session.run(None, feed)
    return np.concatenate([first[:1, 0], others[1:, 0]]), feed


def median_us(session, feed, passes):
    times = []
    for _ in range(passes):
        begin = time.perf_counter_ns()
        session.run(None, feed)
        times.append(time.perf_counter_ns() - begin)
    return statistics.median(times) / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="64,200,600")
    parser.add_argument("--passes", type=int, default=300)
    args = parser.parse_args()
    wanted = [int(jobs) for jobs in args.jobs.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([TEMPONET, "bench", "infer", "--write", folder], check=True)
        with safe_open(Path(folder) / "model.safetensors", "np") as file:
            architecture = json.loads(file.metadata()["architecture"])
            weights = {name: file.get_tensor(name) for name in file.keys()}
        cases = json.loads((Path(folder) / "cases.json").read_text())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    model = build(weights, architecture)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    figures = json.loads(subprocess.run([TEMPONET, "bench", "infer", "--json"], check=True, capture_output=True).stdout)
    ours = {case["jobs"]: case for case in reversed(figures["kernels"])}
    print(f"ONNX Runtime {onnxruntime.__version__}, TempoNet's kernel {figures['kernels'][0]['kernel']}")
    print("jobs  distinct  TempoNet µs  ORT all µs  ratio  ORT distinct µs  ratio  gap f32  gap fastest")
    for case in (case for case in cases if case["jobs"] in wanted):
        slack, count = np.array(case["slack"]), np.array(case["count"])
        counted, feed = run(session, case["idle"], slack, np.concatenate([[0], np.log(count)]))
        repeated, whole = run(session, case["idle"], np.repeat(slack, count), np.zeros(count.sum() + 1))
        firsts = np.concatenate([[0], 1 + np.cumsum(count) - count])
        gap = max(np.abs(counted - case["q"]).max(), np.abs(repeated[firsts] - case["q"]).max())
        assert gap < CLOSE, f"{case['jobs']} jobs: the numbers are {gap} apart"
        fastest = np.abs(counted - case["q_fastest"]).max()
        here = ours[case["jobs"]]["median_ns"] / 1e3
        all_rows, distinct = median_us(session, whole, args.passes), median_us(session, feed, args.passes)
        print(
            f"{case['jobs']:4}  {len(slack):8}  {here:11.1f}  {all_rows:10.1f}  {all_rows / here:5.1f}"
            f"  {distinct:15.1f}  {distinct / here:5.1f}  {gap:.1e}  {fastest:.1e}"
        )


if __name__ == "__main__":
    main()
