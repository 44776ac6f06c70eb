"""Results: tables, pages, pictures."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import temponet


def test_tables_are_the_same_in_every_library() -> None:
    run = temponet.simulate("robot", "edf", horizon="1s")
    arrow, polars, pandas, arrays = run.jobs.to_arrow(), run.to_polars(), run.to_pandas(), run.jobs.to_numpy()
    assert isinstance(arrow, pa.Table) and isinstance(polars, pl.DataFrame) and isinstance(pandas, pd.DataFrame)
    assert arrow.column_names == polars.columns == list(pandas.columns) == run.jobs.columns
    assert arrow.num_rows == len(polars) == len(pandas) == len(run.jobs)
    for name in ("release_ns", "met", "task"):
        assert arrow[name].to_pylist() == polars[name].to_list() == pandas[name].to_list() == arrays[name].tolist()
    # A job that never completed has no completion: null in Arrow, NaN in NumPy.
    missing = [value is None for value in arrow["completion_ns"].to_pylist()]
    assert any(missing) and missing == np.isnan(arrays["completion_ns"]).tolist()
    assert sum(arrow["met"].to_pylist()) == run.met and arrow.num_rows == run.released


def test_columns_of_arrow_are_not_copied() -> None:
    jobs = temponet.simulate("robot", "edf", horizon="1s").jobs
    first, second = jobs.to_arrow(), jobs.to_arrow()
    addresses = [table["release_ns"].chunk(0).buffers()[1].address for table in (first, second)]
    assert addresses[0] == addresses[1]
    assert first["release_ns"].to_numpy()[0] == jobs.to_numpy()["release_ns"][0]


def test_a_table_outlives_its_run() -> None:
    table = temponet.simulate("standard-125", "edf", horizon="1s").to_arrow()
    assert table.num_rows == 51 and sum(table["release_ns"].to_pylist()) > 0


def test_slices_fill_the_time_that_is_not_idle() -> None:
    run = temponet.simulate("standard-125", "edf", horizon="3s")
    slices = run.slices.to_numpy()
    assert (slices["end_ns"] - slices["start_ns"]).sum() + run.idle_ns == run.horizon_ns


def test_pictures_and_pages(tmp_path: Path) -> None:
    comparison = temponet.compare("standard-125", "edf,mh-edf")
    run = temponet.simulate("standard-125", "edf")
    for picture in (run.gantt(until="600ms"), comparison.gantt("mh-edf"), temponet.sweep([1.0], sets=2, schedulers="edf").svg()):
        assert ElementTree.fromstring(picture).tag.endswith("svg")
    assert "<svg" in run._repr_html_() and "edf" in run._repr_html_()
    page = comparison._repr_html_()
    assert "80.65%" in page and "<svg" in page and "mh-edf" in page
    comparison.report(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text().startswith("<!")
    run.perfetto(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]


def test_a_comparison_is_a_table_of_its_schedulers() -> None:
    comparison = temponet.compare("robot", "edf,rm", runs=2, horizon="1s", oracle_budget=None)
    table = comparison.to_polars()
    assert table["scheduler"].to_list() == [row.scheduler for row in comparison]
    assert table["met"].to_list() == [row.met for row in comparison]
    assert table["compliance_ci95"].to_list() == [row.compliance_ci95 for row in comparison]


def test_models_have_tensors_and_bytes(tmp_path: Path) -> None:
    model = temponet.Model.built_in()
    assert temponet.Model.from_bytes(model.to_bytes()) == model
    tensors = model.tensors()
    assert all(tensor.dtype == np.float32 for tensor in tensors.values())
    same = model.with_tensors(tensors, provenance=str(model.provenance))
    model.save(tmp_path / "m.safetensors")
    assert temponet.Model.load(tmp_path / "m.safetensors") == model
    assert {name: tensor.tobytes() for name, tensor in same.tensors().items()} == {name: tensor.tobytes() for name, tensor in tensors.items()}
