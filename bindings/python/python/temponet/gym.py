"""Gymnasium environments: scheduling as a problem to learn.

`gymnasium.make("temponet/Schedule-v0", task_set="standard-125")` is one simulator, `gymnasium.make_vec` with the same name many
in one native object, which steps them on all threads. Importing this module registers the name.

At a *choice*, a decision point with more ready jobs than cores, the ready jobs are shown by earliest deadline, and an action
picks one. With several cores, `actions="per_job"` takes one step for each core, and time stands still in between;
`actions="per_core"` takes one job for each core at once. An action that the mask forbids leaves the core idle.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from . import _temponet as native
from ._gym_names import NAME, register
from ._lab import recipe
from ._schedulers import Scheduler
from ._task_set import Set, task_set
from ._temponet import Job, View
from .errors import InputError

FEATURES = ("present", "due", "slack", "remaining", "least_remaining", "criticality", "value", "running")
"""Columns of an observation. Times are in median wcets of the set, clipped to ±32; the value is relative to the mean."""

_MOST = 32.0
_MODES = {AutoresetMode.NEXT_STEP: 0, AutoresetMode.SAME_STEP: 1, AutoresetMode.DISABLED: 2}

Observation = dict[str, NDArray[Any]] | NDArray[Any]


class _Settings:
    """What the single and the vector environment have in common: settings, spaces and the shape of observations."""

    def __init__(
        self,
        number: int,
        task_set_given: Set | None,
        slots: int,
        length: float,
        tick: float | None,
        reward: str | dict[str, Any],
        may_idle: bool,
        shield: bool,
        actions: str,
        flat: bool,
        workload: str | dict[str, Any] | None,
    ) -> None:
        if actions not in ("per_job", "per_core"):
            raise InputError(f"actions = {actions!r} is none of 'per_job', 'per_core'")
        # The recipe's reader knows the presets and the shapes of rewards and fills in what is left out.
        given = reward if isinstance(reward, dict) and "shape" in reward else {"shape": reward}
        whole = recipe({"episode": {"reward": given}} | ({} if workload is None else {"workload": workload}))
        drawn = whole["workload"] if task_set_given is None else None
        settings = {
            "slots": slots,
            "length": length,
            "tick": tick,
            "may_idle": may_idle,
            "shield": shield,
            "per_core": actions == "per_core",
            "reward": whole["episode"]["reward"],
            "workload": drawn,
        }
        own = None if task_set_given is None else task_set(task_set_given)._native
        self.native = native.Environments(json.dumps(settings), own, number)
        self.flat, self.slots, self.per_core = flat, slots, actions == "per_core"
        choices, cores = self.native.choices, self.native.cores
        self.action_width = cores if self.per_core else 1
        self.mask_width = choices * self.action_width
        shape = (slots, len(FEATURES))
        jobs = spaces.Box(-_MOST, _MOST, (slots * len(FEATURES),) if flat else shape, np.float32)
        mask = spaces.Box(0, 1, (self.mask_width,), np.int8)
        self.observation_space: spaces.Space[Any] = jobs if flat else spaces.Dict({"jobs": jobs, "action_mask": mask})
        self.action_space: spaces.Space[Any] = (
            spaces.MultiDiscrete([choices] * cores) if self.per_core else spaces.Discrete(choices)
        )

    def observation(self, jobs: NDArray[Any], masks: NDArray[Any]) -> Observation:
        if self.flat:
            return jobs.reshape(*jobs.shape[:-2], -1)
        return {"jobs": jobs, "action_mask": masks}


class ScheduleEnv(gymnasium.Env[Any, Any]):
    """One simulator.

    Settings: `task_set` (a set, a file, a built-in name; or `None` for random sets by `workload`, a preset or table of a
    recipe), `slots` (jobs shown), `length` of an episode in median wcets, `tick` (period of additional decision points in median
    wcets), `reward` as in recipes ("binary", "no_penalty", "misses", a table), `may_idle`, `shield` (overrules actions that
    could cost a guaranteed deadline), `actions` ("per_job" or "per_core"), `flat` (the observation is one vector, and the mask
    only in the info).

    An episode is truncated at its length, and terminated if no job is left and none will come. The info has `action_mask`,
    `released` and `met`: the jobs that have left so far and those that met their deadlines.

    >>> import gymnasium, temponet.gym
    >>> env = gymnasium.make("temponet/Schedule-v0", task_set="standard-125")
    >>> observation, info = env.reset(seed=1)
    >>> observation["jobs"].shape, info["action_mask"].tolist()
    ((8, 8), [1, 1, 1, 0, 0, 0, 0, 0])
    """

    metadata: dict[str, Any] = {"render_modes": ["svg"], "render_fps": 1}

    def __init__(
        self,
        task_set: Set | None = "standard-125",
        *,
        slots: int = 8,
        length: float = 200.0,
        tick: float | None = None,
        reward: str | dict[str, Any] = "binary",
        may_idle: bool = False,
        shield: bool = False,
        actions: str = "per_job",
        flat: bool = False,
        workload: str | dict[str, Any] | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._settings = _Settings(
            1, task_set, slots, length, tick, reward, may_idle, shield, actions, flat, workload
        )
        self._buffers = _Buffers(self._settings, 1)
        self.observation_space = self._settings.observation_space
        self.action_space = self._settings.action_space
        self.render_mode = render_mode

    def _seen(self) -> tuple[Observation, dict[str, Any]]:
        buffers = self._buffers
        released, met = buffers.figures[0]
        mask = buffers.masks[0].copy()
        info = {"action_mask": mask, "released": int(released), "met": int(met), "now_ns": self._settings.native.now(0)}
        return self._settings.observation(buffers.observations[0].copy(), mask.copy()), info

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict[str, Any]]:
        super().reset(seed=seed)
        buffers = self._buffers
        seeds = np.array([-1 if seed is None else seed], np.int64)
        self._settings.native.reset(seeds, None, buffers.observations, buffers.masks, buffers.figures)
        return self._seen()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        buffers = self._buffers
        buffers.step(self._settings, np.asarray(action, np.int64).reshape(1, -1), AutoresetMode.DISABLED)
        seen, info = self._seen()
        return seen, float(buffers.rewards[0]), bool(buffers.terminated[0]), bool(buffers.truncated[0]), info

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns the possible actions, as sb3-contrib's MaskablePPO asks for them."""
        masks: NDArray[np.bool_] = self._buffers.masks.astype(np.bool_)[0]
        return masks


class _Buffers:
    """Arrays that the native step writes into."""

    def __init__(self, settings: _Settings, number: int, same_step: bool = False) -> None:
        shape = (number, settings.slots, len(FEATURES))
        last = number if same_step else 1
        self.observations = np.zeros(shape, np.float32)
        self.masks = np.zeros((number, settings.mask_width), np.int8)
        self.rewards = np.zeros(number, np.float64)
        self.terminated = np.zeros(number, np.bool_)
        self.truncated = np.zeros(number, np.bool_)
        self.figures = np.zeros((number, 2), np.int64)
        self.finals = np.zeros((last, *shape[1:]), np.float32)
        self.final_masks = np.zeros((last, settings.mask_width), np.int8)

    def step(self, settings: _Settings, actions: NDArray[np.int64], mode: AutoresetMode) -> None:
        settings.native.step(
            actions,
            _MODES[mode],
            self.observations,
            self.masks,
            self.rewards,
            self.terminated,
            self.truncated,
            self.figures,
            self.finals,
            self.final_masks,
        )


class ScheduleVectorEnv(VectorEnv[Any, Any, Any]):
    """Many simulators in one native object, with the settings of `ScheduleEnv`.

    A step releases the interpreter lock, runs on all threads and writes into preallocated arrays. With `copy=False` these
    arrays are returned as they are, and the next step overwrites them. All three autoreset modes are there; under SAME_STEP
    `info["final_obs"]` and `info["final_info"]` have the last observations and infos of the episodes that ended. Environment `i`
    of a vector with the seed `s` has the episodes of a single environment with the seed `s + i`.

    >>> import gymnasium, numpy as np, temponet.gym
    >>> envs = gymnasium.make_vec("temponet/Schedule-v0", num_envs=3, task_set="standard-125")
    >>> observations, infos = envs.reset(seed=1)
    >>> observations, rewards, terminated, truncated, infos = envs.step(np.zeros(3, np.int64))
    >>> observations["jobs"].shape, rewards.shape
    ((3, 8, 8), (3,))
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}

    def __init__(
        self,
        num_envs: int = 1,
        task_set: Set | None = "standard-125",
        *,
        slots: int = 8,
        length: float = 200.0,
        tick: float | None = None,
        reward: str | dict[str, Any] = "binary",
        may_idle: bool = False,
        shield: bool = False,
        actions: str = "per_job",
        flat: bool = False,
        workload: str | dict[str, Any] | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        self._settings = _Settings(
            num_envs, task_set, slots, length, tick, reward, may_idle, shield, actions, flat, workload
        )
        self._mode = AutoresetMode(autoreset_mode)
        self._buffers = _Buffers(self._settings, num_envs, self._mode == AutoresetMode.SAME_STEP)
        self._copy = copy
        self.num_envs = num_envs
        self.metadata = {**self.metadata, "autoreset_mode": self._mode}
        self.render_mode = render_mode
        self.single_observation_space = self._settings.observation_space
        self.single_action_space = self._settings.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def _given(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.copy() if self._copy else array

    def _seen(self) -> tuple[Observation, dict[str, Any]]:
        buffers = self._buffers
        masks = self._given(buffers.masks)
        all_there = np.ones(self.num_envs, np.bool_)
        info: dict[str, Any] = {"action_mask": masks, "_action_mask": all_there}
        for column, name in enumerate(("released", "met")):
            info[name] = self._given(buffers.figures[:, column])
            info[f"_{name}"] = all_there
        return self._settings.observation(self._given(buffers.observations), masks), info

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        seeds = np.full(self.num_envs, -1, np.int64)
        if isinstance(seed, int):
            seeds = np.arange(seed, seed + self.num_envs, dtype=np.int64)
        elif seed is not None:
            if len(seed) != self.num_envs:
                raise InputError(f"{len(seed)} seeds for {self.num_envs} environments")
            seeds = np.array([-1 if one is None else one for one in seed], np.int64)
        chosen = None if options is None else options.get("reset_mask")
        if chosen is not None:
            chosen = np.ascontiguousarray(chosen, np.bool_)
            if chosen.shape != (self.num_envs,) or not chosen.any():
                raise InputError(f"reset_mask has the shape {chosen.shape} or no environment, of {self.num_envs}")
        buffers = self._buffers
        self._settings.native.reset(seeds, chosen, buffers.observations, buffers.masks, buffers.figures)
        for over in (buffers.terminated, buffers.truncated):
            over[slice(None) if chosen is None else chosen] = False
        return self._seen()

    def step(
        self, actions: Any
    ) -> tuple[Observation, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        buffers, settings = self._buffers, self._settings
        taken = np.ascontiguousarray(actions, np.int64).reshape(self.num_envs, settings.action_width)
        buffers.step(settings, taken, self._mode)
        seen, info = self._seen()
        over = buffers.terminated | buffers.truncated
        if self._mode == AutoresetMode.SAME_STEP and over.any():
            finals, masks = buffers.finals.copy(), buffers.final_masks.copy()
            last = np.full(self.num_envs, None, object)
            for place in np.flatnonzero(over):
                last[place] = settings.observation(finals[place], masks[place])
            info["final_obs"], info["_final_obs"] = last, over
            ended = {"released": info["released"].copy(), "met": info["met"].copy(), "action_mask": masks}
            ended.update({f"_{name}": over for name in list(ended)})
            info["final_info"], info["_final_info"] = ended, over
        given = (self._given(buffers.rewards), self._given(buffers.terminated), self._given(buffers.truncated))
        return seen, *given, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns the possible actions of every environment."""
        return self._buffers.masks.astype(np.bool_)


class PolicyScheduler(Scheduler):
    """A policy that was learned in the environment, as a scheduler for `simulate` and `compare`.

    `policy` is a function from an observation, a dict with `jobs` and `action_mask`, to an action. It sees what the environment
    with `slots` and `may_idle` shows, and like there it is only asked at choices.

    >>> import temponet
    >>> from temponet.gym import PolicyScheduler
    >>> first = PolicyScheduler(lambda observation: 0)
    >>> temponet.simulate("standard-125", first).met == temponet.simulate("standard-125", "edf").met
    True
    """

    name = "policy"

    def __init__(self, policy: Callable[[dict[str, NDArray[Any]]], Any], *, slots: int = 8, may_idle: bool = False) -> None:
        self.policy, self.slots, self.may_idle = policy, slots, may_idle
        self._unit = self._value = 1.0

    def __deepcopy__(self, memo: object) -> PolicyScheduler:
        # Runs share the policy, which may be a network.
        made = PolicyScheduler(self.policy, slots=self.slots, may_idle=self.may_idle)
        made.name = self.name
        return made

    def start(self, tasks: list[dict[str, Any]], cores: int) -> None:
        """Takes the unit of time and the mean value from the tasks."""
        self._unit = float(sorted(task["wcet"] for task in tasks)[len(tasks) // 2])
        self._value = sum(task["value"] for task in tasks) / len(tasks)

    def decide(self, view: View) -> list[Job]:
        if len(view.jobs) <= view.cores:
            return list(view.jobs)
        # The jobs come in the order of ties, and sorting is stable.
        shown = sorted(view.jobs, key=lambda job: job.deadline)[: self.slots]
        jobs = np.zeros((self.slots, len(FEATURES)), np.float32)
        for row, job in zip(jobs, shown):
            overhead = job.remaining - max(job.wcet - job.executed, 1)
            least = max(job.bcet - job.executed, 1) + overhead
            times = [time / self._unit for time in (job.deadline - view.now, job.slack, job.remaining, least)]
            row[:] = [1.0, *times, job.criticality, job.value / self._value, job.core is not None]
        jobs = jobs.clip(-_MOST, _MOST)
        picked: list[Job] = []
        while len(picked) < min(view.cores, len(shown)):
            mask = np.zeros(self.slots + self.may_idle, np.int8)
            mask[: len(shown)] = [job not in picked for job in shown]
            mask[self.slots :] = 1
            action = int(self.policy({"jobs": jobs, "action_mask": mask}))
            if not 0 <= action < len(shown) or shown[action] in picked:
                break
            picked.append(shown[action])
        return picked


register()

__all__ = ["FEATURES", "NAME", "PolicyScheduler", "ScheduleEnv", "ScheduleVectorEnv", "register"]
