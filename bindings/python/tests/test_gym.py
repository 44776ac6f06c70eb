"""The Gymnasium environments."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import temponet
import temponet.gym
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from temponet.gym import FEATURES, PolicyScheduler, ScheduleEnv, ScheduleVectorEnv

SETTINGS: list[dict[str, Any]] = [
    {},
    {"task_set": "robot", "slots": 16},
    {"task_set": "robot", "actions": "per_core", "slots": 16},
    {"task_set": "robot", "may_idle": True, "shield": True, "slots": 12},
    {"flat": True, "reward": {"shape": {"lateness": {"weight": 0.5}}, "migration": 0.1}},
    {"task_set": None, "workload": {}, "slots": 24},
    {"tick": 0.5, "may_idle": True, "length": 30.0},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_checker_is_content(settings: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gymnasium.make("temponet/Schedule-v0", **settings)
        check_env(env.unwrapped, skip_render_check=True)


def best(masks: np.ndarray, width: int) -> np.ndarray:
    """The first possible slot: EDF."""
    return masks.reshape(len(masks), width, -1).argmax(axis=2)


def episode(env: ScheduleEnv, seed: int) -> list[Any]:
    seen, info = env.reset(seed=seed)
    found = [seen["jobs"].copy()]
    over = False
    while not over:
        seen, reward, terminated, truncated, info = env.step(int(info["action_mask"].argmax()))
        over = terminated or truncated
        found += [seen["jobs"].copy(), reward]
    return [*found, info["released"], info["met"]]


def test_the_same_seed_gives_the_same_episode() -> None:
    first, again, other = (episode(ScheduleEnv("robot", length=50.0), seed) for seed in (1, 1, 2))
    assert len(first) == len(again) and all(np.array_equal(a, b) for a, b in zip(first, again))
    assert len(first) != len(other) or any(not np.array_equal(a, b) for a, b in zip(first, other))


@pytest.mark.parametrize("settings", [{"task_set": "robot", "length": 2.0, "slots": 12}, {"task_set": None, "workload": {}, "length": 20.0}])
def test_a_vector_has_the_episodes_of_single_environments(settings: dict[str, Any]) -> None:
    number, steps = 40, 120
    vector = gymnasium.make_vec("temponet/Schedule-v0", num_envs=number, vectorization_mode="vector_entry_point", **settings)
    assert isinstance(vector, ScheduleVectorEnv)
    single = [ScheduleEnv(**settings) for _ in range(number)]
    seen, info = vector.reset(seed=11)
    alone = [env.reset(seed=11 + place) for place, env in enumerate(single)]
    over = np.zeros(number, bool)
    generator = np.random.default_rng(0)
    ended = 0
    for _ in range(steps):
        for place, (one, _) in enumerate(alone):
            assert np.array_equal(one["jobs"], seen["jobs"][place]) and np.array_equal(one["action_mask"], info["action_mask"][place])
        actions = np.array([generator.choice(np.flatnonzero(mask)) for mask in info["action_mask"]])
        seen, rewards, terminated, truncated, info = vector.step(actions)
        for place, env in enumerate(single):
            if over[place]:
                # NEXT_STEP: the step after an end begins the next episode and ignores its action.
                alone[place] = env.reset()
                assert rewards[place] == 0.0 and not terminated[place] and not truncated[place]
                continue
            one, reward, ends, cut, told = env.step(actions[place])
            alone[place] = (one, told)
            assert (reward, ends, cut, told["met"]) == (rewards[place], terminated[place], truncated[place], info["met"][place])
        over = terminated | truncated
        ended += over.sum()
    assert ended > 0


def test_same_step_shows_the_last_observation() -> None:
    settings: dict[str, Any] = {"task_set": "robot", "length": 2.0}
    later = ScheduleVectorEnv(8, **settings)
    same = ScheduleVectorEnv(8, autoreset_mode=AutoresetMode.SAME_STEP, **settings)
    assert same.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP
    (seen, info), (seen_too, info_too) = later.reset(seed=3), same.reset(seed=3)
    ended = 0
    for _ in range(200):
        assert np.array_equal(seen["jobs"], seen_too["jobs"])
        actions = best(info["action_mask"], 1)[:, 0]
        seen, rewards, terminated, truncated, info = later.step(actions)
        seen_too, rewards_too, terminated_too, truncated_too, info_too = same.step(actions)
        over = terminated | truncated
        assert np.array_equal(rewards, rewards_too) and np.array_equal(over, terminated_too | truncated_too)
        if over.any():
            ended += over.sum()
            assert np.array_equal(info_too["_final_obs"], over)
            for place in np.flatnonzero(over):
                assert np.array_equal(info_too["final_obs"][place]["jobs"], seen["jobs"][place])
                assert info_too["final_info"]["met"][place] == info["met"][place] > 0
            # The other mode begins the next episodes one step later; all others repeat nothing, so only compare until here.
            break
    assert ended > 0


def test_disabled_waits_for_a_reset_with_a_mask() -> None:
    envs = ScheduleVectorEnv(4, "robot", length=10.0, autoreset_mode=AutoresetMode.DISABLED)
    seen, info = envs.reset(seed=0)
    over = np.zeros(4, bool)
    while not over.any():
        seen, _, terminated, truncated, info = envs.step(best(info["action_mask"], 1)[:, 0])
        over = terminated | truncated
    before = seen["jobs"].copy()
    seen, rewards, terminated, truncated, _ = envs.step(np.zeros(4, np.int64))
    assert np.array_equal(seen["jobs"][over], before[over]) and not rewards[over].any()
    assert np.array_equal((terminated | truncated)[over], over[over])
    seen_after, info = envs.reset(options={"reset_mask": over})
    assert np.array_equal(seen_after["jobs"][~over], seen["jobs"][~over])
    assert not info["released"][over].any()
    with pytest.raises(temponet.InputError):
        envs.reset(options={"reset_mask": np.zeros(4, bool)})


def test_buffers_are_shared_only_on_request() -> None:
    copied, shared = ScheduleVectorEnv(2), ScheduleVectorEnv(2, copy=False)
    for envs, is_shared in ((copied, False), (shared, True)):
        seen, _ = envs.reset(seed=1)
        later, *_ = envs.step(np.zeros(2, np.int64))
        assert np.shares_memory(seen["jobs"], later["jobs"]) is is_shared


def test_edf_in_the_environment_is_edf_in_the_simulator() -> None:
    """The first slot has the earliest deadline, so always choosing it gives the schedule of EDF."""
    own = temponet.TaskSet.load("standard-125")
    env = ScheduleEnv(own, length=1000.0, reward="no_penalty")
    _, info = env.reset(seed=1)
    total, over = 0.0, False
    while not over:
        _, reward, terminated, truncated, info = env.step(0)
        total, over = total + reward, terminated or truncated
    wcets = sorted(temponet._time.nanoseconds("wcet", task["wcet"]) for task in own.tasks)
    run = temponet.simulate(own, "edf", horizon=1000 * wcets[1])
    assert (info["released"], info["met"], total) == (run.released, run.met, run.met)


def test_per_core_and_per_job_make_the_same_decisions() -> None:
    by_job, by_core = ScheduleEnv("robot", length=30.0, slots=12), ScheduleEnv("robot", length=30.0, slots=12, actions="per_core")
    (_, one), (_, other) = by_job.reset(seed=5), by_core.reset(seed=5)
    totals = [0.0, 0.0]
    over = [False, False]
    while not over[0]:
        _, reward, terminated, truncated, one = by_job.step(int(one["action_mask"].argmax()))
        totals[0], over[0] = totals[0] + reward, terminated or truncated
    while not over[1]:
        # The first three slots, each on the core that its job is on if it is running.
        _, reward, terminated, truncated, other = by_core.step(np.arange(3))
        totals[1], over[1] = totals[1] + reward, terminated or truncated
    assert abs(one["met"] - other["met"]) <= 0.05 * one["met"]


def test_the_shield_overrules() -> None:
    """The last slot first is the worst choice; behind the shield the guaranteed tasks meet their deadlines nevertheless."""
    found = {}
    for shield in (False, True):
        env = ScheduleEnv("robot", length=200.0, slots=12, shield=shield, reward={"shape": "misses", "by_criticality": 1000.0, "by_value": False})
        _, info = env.reset(seed=5)
        total, over = 0.0, False
        while not over:
            _, reward, terminated, truncated, info = env.step(int(np.flatnonzero(info["action_mask"])[-1]))
            total, over = total + reward, terminated or truncated
        found[shield] = total
    assert found[False] < 2 * found[True] <= 0


def test_settings_that_make_no_sense_are_refused() -> None:
    for settings, words in [({"slots": 0}, "slots"), ({"length": -1.0}, "length"), ({"actions": "both"}, "both"), ({"reward": "gold"}, "gold"), ({"task_set": None, "workload": "no-such"}, "no-such")]:
        with pytest.raises(temponet.InputError, match=words):
            ScheduleEnv(**settings)
    with pytest.raises(temponet.InputError, match="num_envs"):
        ScheduleVectorEnv(0)
    assert len(FEATURES) == ScheduleEnv().observation_space["jobs"].shape[1]


def test_the_numpy_environment_of_the_benchmark_is_the_same_problem() -> None:
    """The peer that throughput is compared with shows the same observations and gives the same rewards."""
    sys.path.insert(0, str(Path(__file__).parents[3] / "bench" / "python"))
    from numpy_env import NumpyVectorEnv

    ours, theirs = ScheduleVectorEnv(16, "standard-125"), NumpyVectorEnv(16)
    (seen, info), (other, told) = ours.reset(seed=1), theirs.reset(seed=1)
    generator = np.random.default_rng(1)
    for step in range(600):
        assert np.allclose(seen["jobs"], other["jobs"]), step
        assert np.array_equal(seen["action_mask"], other["action_mask"]), step
        actions = np.array([generator.choice(np.flatnonzero(mask)) for mask in info["action_mask"]])
        seen, rewards, terminated, truncated, info = ours.step(actions)
        other, rewards_too, _, over, told = theirs.step(actions)
        assert np.array_equal(rewards, rewards_too) and np.array_equal(terminated | truncated, over), step
        assert np.array_equal(info["met"], told["met"]) and np.array_equal(info["released"], told["released"]), step


def test_a_policy_sees_the_same_as_a_scheduler() -> None:
    """A policy that depends on every number of the observation gives the same schedule in the environment and as a scheduler."""
    weights = np.random.default_rng(5).normal(size=8)

    def policy(observation: dict[str, np.ndarray]) -> int:
        scores = observation["jobs"] @ weights
        return int(np.where(observation["action_mask"][: len(scores)] == 1, scores, -np.inf).argmax())

    own = temponet.TaskSet.load("robot")
    env = ScheduleEnv(own, length=300.0, slots=12)
    seen, info = env.reset(seed=4)
    over = False
    while not over:
        seen, _, terminated, truncated, info = env.step(policy(seen))
        over = terminated or truncated
    assert info["released"] > 100
    # A deterministic set has the same jobs with every seed.
    fixed = temponet.TaskSet.load("standard-125")
    env = ScheduleEnv(fixed, length=600.0, slots=12)
    seen, info = env.reset(seed=4)
    over = False
    while not over:
        seen, _, terminated, truncated, info = env.step(policy(seen))
        over = terminated or truncated
    wcets = sorted(temponet._time.nanoseconds("wcet", task["wcet"]) for task in fixed.tasks)
    run = temponet.simulate(fixed, PolicyScheduler(policy, slots=12), horizon=600 * wcets[1])
    assert (run.released, run.met) == (info["released"], info["met"])
