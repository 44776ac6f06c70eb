"""Real clients of the environments: they learn the three-task overload to its optimum."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import temponet

pytestmark = pytest.mark.long
OPTIMUM = 8050


def test_maskable_ppo_learns_the_overload_to_its_optimum() -> None:
    import torch
    from sb3_contrib import MaskablePPO
    from temponet.gym import PolicyScheduler
    from temponet.sb3 import ScheduleVecEnv

    torch.set_num_threads(1)
    envs = ScheduleVecEnv(32, "standard-125")
    model = MaskablePPO("MultiInputPolicy", envs, n_steps=128, batch_size=512, n_epochs=4, learning_rate=1e-3, gamma=0.99, seed=1, device="cpu")
    model.learn(150_000)

    def act(observation: dict[str, np.ndarray[Any, Any]]) -> int:
        action, _ = model.predict(observation, action_masks=observation["action_mask"].astype(bool), deterministic=True)
        return int(action)

    run = temponet.simulate("standard-125", PolicyScheduler(act))
    assert run.met == OPTIMUM, run


def test_the_vec_env_is_one_of_stable_baselines() -> None:
    from temponet.sb3 import ScheduleVecEnv

    envs = ScheduleVecEnv(4, "robot", length=2.0)
    envs.seed(3)
    seen = envs.reset()
    assert seen["jobs"].shape[0] == 4 and envs.has_attr("action_masks")
    ends = 0
    for _ in range(300):
        actions = np.stack(envs.env_method("action_masks")).argmax(axis=1)
        seen, rewards, over, infos = envs.step(actions)
        for place in np.flatnonzero(over):
            ends += 1
            assert envs.observation_space.contains(infos[place]["terminal_observation"])
            assert infos[place]["episode"]["met"] > 0 and infos[place]["TimeLimit.truncated"]
    assert ends > 0


def test_ppo_in_one_file_learns_the_overload_to_its_optimum() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
    import ppo_torch

    agent = ppo_torch.learn(verbose=False)
    run = temponet.simulate("standard-125", agent.scheduler(8))
    assert run.met == OPTIMUM, run


def test_a_network_of_pytorch_runs_in_the_command(command, tmp_path: Path) -> None:
    """A network with our encoder's shape imitates a scheduler in PyTorch; exported, the command line runs it."""
    import torch
    from temponet.torch import Encoder, batch, export_torch, observations

    torch.manual_seed(0)
    like = temponet.Model.load("random:1")
    network = Encoder(like)
    decisions = observations(like, "standard-125", "mh-edf", horizon="30s")
    idle, jobs, bias, wanted = batch(decisions)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    for _ in range(60):
        optimizer.zero_grad()
        logits = network(idle, jobs, bias)[:, 1:].masked_fill(bias[:, 1:].isinf(), -1e9)
        loss = -(wanted[:, 1:] * torch.log_softmax(logits, dim=1)).sum(dim=1).mean()
        loss.backward()
        optimizer.step()
    model = export_torch(network, tmp_path / "mine.safetensors", like=like)
    assert not model.is_untrained
    theirs = command.json("compare", "standard-125", "--schedulers", "temponet-unshielded,edf", "--model", "mine.safetensors")
    ours = temponet.compare("standard-125", "temponet-unshielded,edf", model=model)
    assert ours.to_dict() == theirs
    assert ours["temponet-unshielded"].met == OPTIMUM, ours


def test_the_network_in_pytorch_computes_what_ours_does() -> None:
    import torch
    from temponet.torch import Encoder, batch, observations

    for name in ("random:3", "random-paper:3"):
        like = temponet.Model.load(name)
        at = temponet.explain("robot", at="100ms", model=like, shield=False).to_dict()["decision"]
        # The same decision: the explanation runs the model itself up to it, so its own schedule is followed.
        network = Encoder(like)
        rows = np.array([row["token"] for row in at["rows"]], np.int64)
        counts = [row["count"] for row in at["rows"]]
        seen = observations(like, "robot", "edf", horizon="50ms")[0]
        bias = torch.tensor([[0.0, *np.log(counts)]], dtype=torch.float32)
        with torch.no_grad():
            q = network(torch.tensor([seen.idle]), torch.from_numpy(rows)[None], bias)[0]
        for job in at["jobs"]:
            assert abs(float(q[job["row"]]) - job["q"]) < 1e-3 * max(1.0, abs(job["q"])), name


def test_rllib_trains_through_the_vector_entry_point() -> None:
    code = """
import gymnasium, temponet.gym
from gymnasium.envs.registration import VectorizeMode
from ray.rllib.algorithms.ppo import PPOConfig
config = (
    PPOConfig()
    .environment(temponet.gym.NAME, env_config={"task_set": "standard-125", "flat": True, "length": 20.0})
    .env_runners(num_env_runners=0, num_envs_per_env_runner=16, gym_env_vectorize_mode=VectorizeMode.VECTOR_ENTRY_POINT)
    .training(train_batch_size_per_learner=2048, minibatch_size=256, num_epochs=2)
)
algorithm = config.build_algo()
found = [algorithm.train()["env_runners"] for _ in range(3)]
assert type(algorithm.env_runner.env.unwrapped).__name__ == "ScheduleVectorEnv", algorithm.env_runner.env
print("returns", [round(one["episode_return_mean"], 1) for one in found])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "returns" in done.stdout
