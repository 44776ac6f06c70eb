"""Proximal policy optimization in one file, in the style of CleanRL, with PyTorch and the native vector environment.

    python ppo_torch.py                          # learns the three-task overload to its optimum, 80.65% of the jobs
    python ppo_torch.py --task-set mytasks.toml --slots 16 --steps 2000000

It needs `pip install temponet[gym] torch`.
"""

from __future__ import annotations

import argparse

import gymnasium
import numpy as np
import temponet.gym
import torch
from torch import Tensor, nn
from torch.distributions import Categorical


class Agent(nn.Module):
    """Policy and value over the rows of the jobs."""

    def __init__(self, inputs: int, actions: int) -> None:
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, actions))
        self.value = nn.Sequential(nn.Linear(inputs, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))

    def actions(self, jobs: Tensor, mask: Tensor) -> Categorical:
        logits = self.policy(jobs.flatten(1))
        return Categorical(logits=logits.masked_fill(mask == 0, -1e9))

    def scheduler(self, slots: int) -> temponet.gym.PolicyScheduler:
        """The greedy policy as a scheduler for `temponet.compare`."""

        def act(observation: dict[str, np.ndarray]) -> int:
            with torch.no_grad():
                jobs, mask = torch.from_numpy(observation["jobs"])[None], torch.from_numpy(observation["action_mask"])[None]
                return int(self.actions(jobs, mask).logits.argmax())

        return temponet.gym.PolicyScheduler(act, slots=slots)


def learn(task_set: str = "standard-125", *, slots: int = 8, steps: int = 200_000, seed: int = 1, number: int = 64, verbose: bool = True) -> Agent:
    """Learns a policy with `steps` decisions of all environments together."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    length, epochs, shards, gamma, lam = 64, 4, 4, 0.99, 0.95
    envs = gymnasium.make_vec(temponet.gym.NAME, num_envs=number, vectorization_mode="vector_entry_point", task_set=task_set, slots=slots, length=200.0)
    seen, _ = envs.reset(seed=seed)
    shape = seen["jobs"].shape[1:]
    agent = Agent(int(np.prod(shape)), envs.single_action_space.n)
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3, eps=1e-5)
    jobs, masks = torch.zeros((length, number, *shape)), torch.zeros((length, number, envs.single_action_space.n))
    actions, likelihoods, rewards, values, over = (torch.zeros((length, number)) for _ in range(5))
    ended = torch.zeros(number)
    updates = max(1, steps // (length * number))
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = 1e-3 * (1.0 - update / updates)
        for step in range(length):
            jobs[step], masks[step], over[step] = torch.from_numpy(seen["jobs"]), torch.from_numpy(seen["action_mask"]), ended
            with torch.no_grad():
                distribution = agent.actions(jobs[step], masks[step])
                action = distribution.sample()
                values[step] = agent.value(jobs[step].flatten(1)).squeeze(1)
            actions[step], likelihoods[step] = action, distribution.log_prob(action)
            seen, reward, terminated, truncated, _ = envs.step(action.numpy())
            rewards[step], ended = torch.from_numpy(reward).float(), torch.from_numpy(terminated | truncated).float()
        with torch.no_grad():
            after = agent.value(torch.from_numpy(seen["jobs"]).flatten(1)).squeeze(1)
            advantages, last = torch.zeros_like(rewards), torch.zeros(number)
            for step in reversed(range(length)):
                # `over` of a step says that its state was the last of an episode; the step after it only resets.
                is_last = ended if step == length - 1 else over[step + 1]
                following = after if step == length - 1 else values[step + 1]
                delta = rewards[step] + gamma * following * (1 - is_last) - values[step]
                last = delta + gamma * lam * (1 - is_last) * last
                advantages[step] = last
            returns = advantages + values
        used = over.flatten() == 0
        flat = [part.flatten(0, 1)[used] for part in (jobs, masks, actions, likelihoods, advantages, returns)]
        for _ in range(epochs):
            for index in torch.randperm(len(flat[0])).chunk(shards):
                some_jobs, some_masks, some_actions, before, gains, wanted = (part[index] for part in flat)
                distribution = agent.actions(some_jobs, some_masks)
                ratio = (distribution.log_prob(some_actions) - before).exp()
                gains = (gains - gains.mean()) / (gains.std() + 1e-8)
                policy_loss = torch.max(-gains * ratio, -gains * ratio.clamp(0.8, 1.2)).mean()
                value_loss = 0.5 * (agent.value(some_jobs.flatten(1)).squeeze(1) - wanted).square().mean()
                loss = policy_loss + 0.5 * value_loss - 0.01 * distribution.entropy().mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        if verbose and (update + 1) % 10 == 0:
            print(f"{(update + 1) * length * number} decisions, reward {rewards.mean():.3f} each", flush=True)
    return agent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task-set", default="standard-125")
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    agent = learn(given.task_set, slots=given.slots, steps=given.steps, seed=given.seed)
    comparison = temponet.compare(given.task_set, [agent.scheduler(given.slots), "edf", "mh-edf"])
    for row in comparison:
        print(f"{row.scheduler:10} {100 * (row.compliance or 0):.2f}%")
    if comparison.clairvoyant is not None:
        print(f"optimum    {100 * comparison.clairvoyant.share:.2f}%")


if __name__ == "__main__":
    main()
