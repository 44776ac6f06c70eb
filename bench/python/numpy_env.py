"""The three-task overload as a vector environment in NumPy, the way such environments are usually written: arrays over the
environments, a loop over the events.

It has the problem of `temponet.gym` on `standard-125`: periodic tasks on one core, preemptive, a job is aborted at its deadline,
+1 for a job in time and -1 for a miss, a stop at each decision point with more than one ready job, and the same eight features
for each job. Each task has at most one ready job, because deadlines are periods. `test` compares it with the native one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import temponet

LENGTH = 200.0


class NumpyVectorEnv:
    """Environments with one row per task instead of per job; autoreset happens in the next step."""

    def __init__(self, number: int, task_set: str = "standard-125", slots: int = 8) -> None:
        tasks = temponet.TaskSet.load(task_set).tasks
        nanoseconds = temponet._time.nanoseconds
        self.period = np.array([nanoseconds("period", task["period"]) for task in tasks], np.int64)
        self.wcet = np.array([nanoseconds("wcet", task["wcet"]) for task in tasks], np.int64)
        self.number, self.slots, self.tasks = number, slots, len(tasks)
        self.unit = int(np.sort(self.wcet)[self.tasks // 2])
        self.horizon = int(self.unit * LENGTH)

    def reset(self, *, seed: int | None = None) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        shape = (self.number, self.tasks)
        self.now = np.zeros(self.number, np.int64)
        self.left = np.broadcast_to(self.wcet, shape).copy()
        self.due = np.broadcast_to(self.period, shape).copy()
        self.ready = np.ones(shape, bool)
        self.running = np.full(self.number, -1)
        self.over = np.zeros(self.number, bool)
        self.figures = np.zeros((self.number, 2), np.int64)
        return self._seen()

    def _begin(self, which: np.ndarray) -> None:
        self.now[which] = 0
        self.left[which], self.due[which], self.ready[which] = self.wcet, self.period, True
        self.running[which], self.over[which], self.figures[which] = -1, False, 0

    def _order(self) -> np.ndarray:
        """Tasks by earliest deadline; those without a ready job last. Ties go to the earlier release, then the lower index."""
        far = np.iinfo(np.int64).max
        due = np.where(self.ready, self.due, far)
        return np.lexsort((np.broadcast_to(np.arange(self.tasks), due.shape), self.due - self.period, due), axis=1)

    def _seen(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        self.order = self._order()
        rows = np.arange(self.number)[:, None]
        ready = self.ready[rows, self.order]
        left, due = self.left[rows, self.order], self.due[rows, self.order] - self.now[:, None]
        remaining = np.maximum(left, 1)
        jobs = np.zeros((self.number, self.slots, 8), np.float32)
        there = jobs[:, : self.tasks]
        for column, values in enumerate((np.ones_like(due), due / self.unit, (due - remaining) / self.unit, remaining / self.unit, remaining / self.unit)):
            there[:, :, column] = np.clip(values, -32, 32)
        there[:, :, 6] = 1.0
        there[:, :, 7] = self.order == self.running[:, None]
        there *= ready[:, :, None]
        masks = np.zeros((self.number, self.slots), np.int8)
        masks[:, : self.tasks] = ready
        masks[self.over] = 0
        masks[~masks.any(axis=1), 0] = 1
        return {"jobs": jobs, "action_mask": masks}, {"action_mask": masks, "released": self.figures[:, 0], "met": self.figures[:, 1]}

    def _advance(self, moving: np.ndarray, rewards: np.ndarray) -> None:
        """Goes to the next event of the environments in `moving`: a completion, then deadlines and releases."""
        rows = np.flatnonzero(moving)
        runs = self.running[rows] >= 0
        task = np.maximum(self.running[rows], 0)
        finish = np.where(runs, self.now[rows] + self.left[rows, task], np.iinfo(np.int64).max)
        next_due = self.due[rows].min(axis=1)
        date = np.minimum(np.minimum(finish, next_due), self.horizon)
        self.left[rows[runs], task[runs]] -= (date - self.now[rows])[runs]
        self.now[rows] = date
        done = runs & (finish == date)
        self.ready[rows[done], task[done]] = False
        self.running[rows[done]] = -1
        rewards[rows[done]] += 1
        self.figures[rows[done]] += 1
        at_due = self.due[rows] == date[:, None]
        missed = at_due & self.ready[rows]
        rewards[rows] -= missed.sum(axis=1)
        self.figures[rows, 0] += missed.sum(axis=1)
        stopped = runs & ~done & missed[np.arange(len(rows)), task]
        self.running[rows[stopped]] = -1
        over = date >= self.horizon
        self.over[rows] = over
        fresh = at_due & ~over[:, None]
        self.ready[rows] = (self.ready[rows] & ~at_due) | fresh
        self.left[rows] = np.where(fresh, self.wcet, self.left[rows])
        self.due[rows] = np.where(fresh, self.due[rows] + self.period, self.due[rows])

    def step(self, actions: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        rewards = np.zeros(self.number)
        begun = self.over.copy()
        if begun.any():
            self._begin(begun)
        legal = ~begun & (actions < self.tasks)
        picked = self.order[np.arange(self.number), np.minimum(actions, self.tasks - 1)]
        legal &= self.ready[np.arange(self.number), picked]
        self.running[~begun] = -1
        self.running[legal] = picked[legal]
        moving = ~begun
        while moving.any():
            self._advance(moving, rewards)
            count = self.ready.sum(axis=1)
            # With one ready job there is nothing to choose: it runs.
            alone = moving & ~self.over & (count <= 1)
            self.running[alone] = np.where(count[alone] == 1, self.ready[alone].argmax(axis=1), -1)
            moving = alone
        seen, info = self._seen()
        return seen, rewards, np.zeros(self.number, bool), self.over.copy(), info
