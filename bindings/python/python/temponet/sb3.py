"""The vector environment for Stable-Baselines3, which has a vector interface of its own.

`ScheduleVecEnv(64, task_set="standard-125")` is one native object with 64 simulators. sb3-contrib's `MaskablePPO` takes its action
masks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

from .gym import ScheduleVectorEnv


class ScheduleVecEnv(VecEnv):
    """`temponet.gym.ScheduleVectorEnv`, with its settings, as a `VecEnv`.

    Episodes restart in the step that ends them. The info of such a step has `terminal_observation`, `TimeLimit.truncated`,
    and `episode` with the return, the length, and the jobs `released` and `met`.
    """

    def __init__(self, num_envs: int = 1, task_set: Any = "standard-125", **settings: Any) -> None:
        settings.setdefault("autoreset_mode", AutoresetMode.SAME_STEP)
        self._envs = ScheduleVectorEnv(num_envs, task_set, **settings)
        super().__init__(num_envs, self._envs.single_observation_space, self._envs.single_action_space)
        self._returns = np.zeros(num_envs)
        self._lengths = np.zeros(num_envs, np.int64)
        self._actions: NDArray[np.int64] = np.zeros(0, np.int64)
        self._first_seed: int | None = None

    def reset(self) -> Any:
        seen, _ = self._envs.reset(seed=self._first_seed)
        self._first_seed = None
        self._returns[:] = 0.0
        self._lengths[:] = 0
        return seen

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Sets the seed of the next reset: environment `i` gets `seed + i`."""
        self._first_seed = seed
        return [None if seed is None else seed + place for place in range(self.num_envs)]

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = np.asarray(actions, np.int64)

    def step_wait(self) -> tuple[Any, NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        seen, rewards, terminated, truncated, info = self._envs.step(self._actions)
        self._returns += rewards
        self._lengths += 1
        over = terminated | truncated
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for place in np.flatnonzero(over):
            infos[place] = {
                "terminal_observation": info["final_obs"][place],
                "TimeLimit.truncated": bool(truncated[place] and not terminated[place]),
                "episode": {
                    "r": float(self._returns[place]),
                    "l": int(self._lengths[place]),
                    "released": int(info["released"][place]),
                    "met": int(info["met"][place]),
                },
            }
        self._returns[over] = 0.0
        self._lengths[over] = 0
        return seen, rewards.astype(np.float32), over, infos

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns the possible actions of every environment."""
        return self._envs.action_masks()

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        if method_name != "action_masks":
            raise AttributeError(f"the simulators have no method {method_name!r}")
        masks = self.action_masks()
        return [masks[place] for place in self._places(indices)]

    def _places(self, indices: None | int | Iterable[int]) -> list[int]:
        return list(self._get_indices(indices))

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        if attr_name == "action_masks":
            return [self.action_masks for _ in self._places(indices)]
        return [getattr(self._envs, attr_name) for _ in self._places(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(f"{attr_name!r}: the simulators share their settings, which do not change")

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        return [False for _ in self._places(indices)]

    def close(self) -> None:
        self._envs.close()


__all__ = ["ScheduleVecEnv"]
