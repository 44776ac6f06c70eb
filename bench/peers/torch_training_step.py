"""Repeats whole updates of Q-learning in PyTorch, with the same weights, transitions and draws, then times an update on one thread.

    pip install torch
    cargo build --release
    python3 bench/peers/torch_training_step.py [--temponet target/release/temponet] [--case case.json] [--rounds 5]

The updates are those of `cargo run -p temponet-train --example training_step` (or of its output in a file, with --case): Huber loss against a
target network, Adam, soft update. The losses, the gradient norms, Adam's moments and the resulting weights must be the same, up to rounding;
otherwise the exit code is 1. The timed network is the paper's (d = 128, L = 2, H = 4, feed-forward 512), every job with its own row. If a
binary is given, the times of `temponet bench train --json` are printed beside it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F

ROOT = Path(__file__).resolve().parents[2]
# Greatest difference allowed, relative to the greatest number of its kind.
CLOSE = 1e-5
PAPER = {"width": 128, "layers": 2, "heads": 4, "feed_forward": 512}
CASES = [(64, 6), (64, 33), (16, 601)]


def rows(samples):
    """Returns samples as a padded batch: features of idle and job rows, and the attention bias of every key (-inf for padding)."""
    longest = max(len(sample["counts"]) for sample in samples)
    width = len(samples[0]["tokens"]) // len(samples[0]["counts"])
    idle = torch.tensor([sample["idle"] for sample in samples])
    jobs = torch.zeros(len(samples), longest, width, dtype=torch.long)
    bias = torch.full((len(samples), longest + 1), -torch.inf)
    for place, sample in enumerate(samples):
        count = len(sample["counts"])
        jobs[place, :count] = torch.tensor(sample["tokens"]).view(count, width)
        bias[place, : count + 1] = torch.tensor(sample["bias"])
    return idle, jobs, bias


def forward(weights, architecture, batch):
    """Returns an output for every row, the idle row first, and a value for every state."""
    idle, jobs, bias = batch
    tables = lambda kind: [weights[f"embed.{kind}.{feature['name']}"] for feature in architecture[kind]]
    sums = lambda kind, values: sum(table[values[..., place]] for place, table in enumerate(tables(kind)))
    x = torch.cat([sums("idle", idle).unsqueeze(1), sums("job", jobs)], dim=1)
    samples, count, width = x.shape
    linear = lambda name, x: F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"].view(-1))
    for layer in range(architecture["layers"]):
        part = lambda name: f"layers.{layer}.{name}"
        norm = lambda name, x: F.layer_norm(
            x, (width,), weights[part(f"{name}.weight")].view(-1), weights[part(f"{name}.bias")].view(-1), eps=1e-5
        )
        split = lambda name: linear(part(f"attention.{name}"), x).view(samples, count, architecture["heads"], -1).transpose(1, 2)
        mixed = F.scaled_dot_product_attention(
            split("query"), split("key"), split("value"), attn_mask=bias.view(samples, 1, 1, count)
        )
        mixed = mixed.transpose(1, 2).reshape(samples, count, width)
        x = norm("attention_norm", x + linear(part("attention.output"), mixed))
        x = norm("feed_forward_norm", x + linear(part("feed_forward.down"), F.relu(linear(part("feed_forward.up"), x))))
    q = torch.cat([linear("head.idle", x[:, :1]), linear("head.job", x[:, 1:])], dim=1).squeeze(2)
    return q, linear("head.value", x[:, 0]).squeeze(1)


def best_rows(q, counts, cores):
    """Returns the rows of the jobs with the highest outputs, one for each core."""
    chosen = []
    for row in sorted(range(1, len(counts) + 1), key=lambda row: -q[row]):
        chosen += [row] * min(cores - len(chosen), counts[row - 1])
    return chosen


def choice(transitions, rows_of, width):
    """Returns how often each row was chosen."""
    chosen = torch.zeros(len(transitions), width)
    for place, rows in enumerate(rows_of):
        for row in rows:
            chosen[place, row] += 1
    return chosen


def worth(q, value, chosen):
    """Returns V + Σ (A_k − A_idle) over the chosen jobs."""
    return value + (q * chosen).sum(1) - q[:, 0] * chosen.sum(1)


class Learner:
    def __init__(self, weights, target, architecture, settings):
        self.weights = {name: tensor.clone().requires_grad_() for name, tensor in weights.items()}
        self.target = {name: tensor.clone() for name, tensor in target.items()}
        self.architecture, self.settings = architecture, settings
        adam = settings["adam"]
        # In single precision, like ours; PyTorch would keep them in double precision.
        betas = tuple(torch.tensor(adam[key], dtype=torch.float32).item() for key in ("beta1", "beta2"))
        self.adam = torch.optim.Adam(self.weights.values(), lr=settings["rate"], betas=betas, eps=adam["epsilon"])

    def update(self, states, chosen, reward, discount, following, best):
        """Does one update; `best` selects the rows chosen next, given the target network's outputs."""
        with torch.no_grad():
            q, value = forward(self.target, self.architecture, following)
            target = reward + discount * worth(q, value, best(q))
        q, value = forward(self.weights, self.architecture, states)
        loss = F.huber_loss(worth(q, value, chosen), target, delta=self.settings["huber"])
        self.adam.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self.weights.values(), 1e9)
        self.adam.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(self.target.values()), list(self.weights.values()), self.settings["target_share"])
        return loss.item(), norm.item()


def lists(tensors, name):
    found = {key.split("/")[1]: value for key, value in tensors.items() if key.startswith(f"{name}/")}
    return {key: torch.tensor(value["values"]).view(value["shape"]) for key, value in found.items()}


def check(case):
    """Repeats the case's updates, prints how far apart both are, and returns whether that is close enough."""
    before, after = case["before"], case["after"]
    learner = Learner(lists(before, "parameters"), lists(before, "target"), case["architecture"], case)
    gaps = {"loss": 0.0, "gradient norm": 0.0}
    for update in case["updates"]:
        drawn = [case["transitions"][place] for place in update["places"]]
        states, following = rows([t["state"] for t in drawn]), rows([t["next"] for t in drawn])
        chosen = choice(drawn, [t["chosen"] for t in drawn], states[2].shape[1])
        best = lambda q: choice(
            drawn, [best_rows(q[k].tolist(), t["next"]["counts"], t["next"]["cores"]) for k, t in enumerate(drawn)], q.shape[1]
        )
        reward, discount = (torch.tensor([t[key] for t in drawn]) for key in ("reward", "discount"))
        loss, norm = learner.update(states, chosen, reward, discount, following, best)
        gaps["loss"] = max(gaps["loss"], abs(loss - update["loss"]) / abs(update["loss"]))
        gaps["gradient norm"] = max(gaps["gradient norm"], abs(norm - update["norm"]) / update["norm"])
    state = lambda key: {name: learner.adam.state[tensor][key] for name, tensor in learner.weights.items()}
    theirs = {
        "weights": ("parameters", learner.weights),
        "target network": ("target", learner.target),
        "mean gradients": ("first", state("exp_avg")),
        "mean squared gradients": ("second", state("exp_avg_sq")),
    }
    for name, (key, tensors) in theirs.items():
        ours = lists(after, key)
        greatest = max(tensor.abs().max().item() for tensor in ours.values())
        gaps[name] = max((tensors[name].detach() - ours[name]).abs().max().item() for name in ours) / greatest
    moved = max((tensor - lists(before, "parameters")[name]).abs().max().item() for name, tensor in lists(after, "parameters").items())
    print(f"PyTorch {torch.__version__}: {len(case['updates'])} updates, which moved the weights by up to {moved:.1e}; greatest relative differences")
    for name, gap in gaps.items():
        print(f"  {name:22}  {gap:.1e}{'' if gap < CLOSE else '  TOO FAR APART'}")
    return all(gap < CLOSE for gap in gaps.values())


def tensors_of(shape):
    """Returns random weights of the paper's network."""
    d, wide = shape["width"], shape["feed_forward"]
    table = lambda size: torch.rand(size, d) * 2 - 1
    weights = {"embed.job.slack": table(128), "embed.idle.cores": table(8), "embed.idle.load": table(16)}
    matrices = {"head.job": (1, d), "head.idle": (1, d), "head.value": (1, d)}
    for layer in range(shape["layers"]):
        for name in ("query", "key", "value", "output"):
            matrices[f"layers.{layer}.attention.{name}"] = (d, d)
        matrices[f"layers.{layer}.feed_forward.up"] = (wide, d)
        matrices[f"layers.{layer}.feed_forward.down"] = (d, wide)
        for name in ("attention_norm", "feed_forward_norm"):
            weights[f"layers.{layer}.{name}.weight"] = torch.ones(1, d)
            weights[f"layers.{layer}.{name}.bias"] = torch.zeros(1, d)
    for name, (outputs, inputs) in matrices.items():
        weights[f"{name}.weight"] = (torch.rand(outputs, inputs) * 2 - 1) / inputs**0.5
        weights[f"{name}.bias"] = torch.zeros(1, outputs)
    return weights


def steps_per_second(batch, tokens, rounds):
    """Returns the median rate of several rounds. The rows are assembled beforehand; for TempoNet that is part of the timed work."""
    names = lambda *list: [{"name": name} for name in list]
    architecture = PAPER | {"job": names("slack"), "idle": names("cores", "load")}
    adam = {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}
    settings = {"adam": adam, "rate": 1e-4, "huber": 1.0, "target_share": 0.01}
    weights = tensors_of(PAPER)
    learner = Learner(weights, weights, architecture, settings)
    draw = lambda: (torch.tensor([[0, 8]] * batch), torch.randint(0, 128, (batch, tokens - 1, 1)), torch.zeros(batch, tokens))
    states, following = draw(), draw()
    chosen = F.one_hot(torch.ones(batch, dtype=torch.long), tokens).float()
    best = lambda q: F.one_hot(1 + q[:, 1:].argmax(1), tokens).float()
    reward, discount = torch.ones(batch), torch.full((batch,), 0.9)
    updates = max(1, 20_000 // (batch * tokens))
    rates = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        for _ in range(updates):
            learner.update(states, chosen, reward, discount, following, best)
        rates.append(updates / (time.perf_counter() - begin))
    return statistics.median(rates[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--temponet", type=Path)
    parser.add_argument("--case", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    example = ["cargo", "run", "--quiet", "-p", "temponet-train", "--example", "training_step"]
    text = args.case.read_text() if args.case else subprocess.run(example, cwd=ROOT, check=True, capture_output=True).stdout
    is_close = check(json.loads(text))
    ours = {}
    if args.temponet:
        figures = subprocess.run([args.temponet, "bench", "train", "--json"], check=True, capture_output=True).stdout
        ours = {(case["batch"], case["tokens"]): case["steps_per_s"] for case in json.loads(figures)["cases"] if not case["merged"]}
    print("batch × tokens  PyTorch steps/s" + ("  TempoNet steps/s  ratio" if ours else ""))
    for batch, tokens in CASES:
        theirs = steps_per_second(batch, tokens, args.rounds)
        here = ours.get((batch, tokens))
        beside = f"  {here:16.2f}  {here / theirs:5.2f}" if here else ""
        print(f"{f'{batch} × {tokens}':>14}  {theirs:15.2f}{beside}")
    sys.exit(0 if is_close else 1)


if __name__ == "__main__":
    main()
