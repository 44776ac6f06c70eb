"""Tables of results, which leave as Arrow, Polars, pandas or NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _temponet as native

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa


class Frame:
    """Something that is a table. Every library that reads the Arrow PyCapsule interface takes it as it is.

    pyarrow and Polars read the columns without copying them.
    """

    def _table(self) -> native.Table:
        raise NotImplementedError

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table().__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pa.Table:
        """Returns the table as a `pyarrow.Table`, without a copy."""
        import pyarrow as pa

        return pa.table(self._table())

    def to_polars(self) -> pl.DataFrame:
        """Returns the table as a `polars.DataFrame`, without a copy of the numbers."""
        import polars as pl

        return pl.DataFrame(self._table())

    def to_pandas(self) -> pd.DataFrame:
        """Returns the table as a `pandas.DataFrame`. It needs no pyarrow; numbers are copied once."""
        import pandas as pd

        return pd.DataFrame(self._table().to_numpy())

    def to_numpy(self) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the columns as NumPy arrays; missing whole numbers are NaN."""
        return self._table().to_numpy()


class Table(Frame):
    """A table.

    >>> import temponet
    >>> jobs = temponet.simulate("standard-125", "edf", horizon="1s").jobs
    >>> len(jobs), jobs.columns[:3]
    (51, ['task', 'job', 'release_ns'])
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: native.Table) -> None:
        self._inner = inner

    def _table(self) -> native.Table:
        return self._inner

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return self._inner.names

    def __len__(self) -> int:
        return len(self._inner)

    def __repr__(self) -> str:
        return f"<Table: {len(self)} rows of {', '.join(self.columns)}>"
