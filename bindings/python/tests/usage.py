"""Uses of the package that mypy checks: what programs write must type."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import temponet
from numpy.typing import NDArray
from temponet.gym import ScheduleVectorEnv


class Mine(temponet.Scheduler):
    def decide(self, view: temponet.View) -> list[temponet.Job]:
        return sorted(view.jobs, key=lambda job: job.slack)[: view.cores]


def use() -> None:
    own: temponet.TaskSet = temponet.TaskSet.generate(8, utilization=1.5, cores=2, bcet=0.5)
    names: list[str] = [task["name"] for task in own]
    comparison: temponet.Comparison = temponet.compare(own, ["edf", Mine()], runs=2, horizon="1s")
    share: float | None = comparison.best.compliance
    table: pa.Table = comparison.to_arrow()
    frame: pl.DataFrame = temponet.simulate(own, Mine()).jobs.to_polars()
    other: pd.DataFrame = temponet.sweep([1.0], sets=2).to_pandas()
    factor: dict[str, float] = temponet.analyze(own).survived
    envs = ScheduleVectorEnv(4, own)
    _, info = envs.reset(seed=1)
    masks: NDArray[np.int8] = info["action_mask"]
    found = temponet.optimum(own)
    lower: int = 0 if found is None else found.lower
    training: temponet.Training = temponet.train(own, temponet.recipe(), progress=print)
    training.model.save("mine.safetensors")
    print(names, share, table, frame, other, factor, masks, lower)
