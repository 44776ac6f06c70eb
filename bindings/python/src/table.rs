//! Tables: named columns that leave as Arrow without a copy (the PyCapsule interface, which pyarrow, Polars, DuckDB and
//! others read), or as NumPy arrays.

use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    StringArray,
};
use arrow_schema::{ArrowError, Field, Schema};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::errors;

/// Columns of equal length.
#[pyclass(frozen, module = "temponet._temponet")]
pub struct Table {
    batch: RecordBatch,
}

/// A column under construction: its name and values.
pub type Column = (&'static str, ArrayRef);

/// A column of whole numbers.
pub fn whole(name: &'static str, values: impl IntoIterator<Item = i64>) -> Column {
    (name, Arc::new(Int64Array::from_iter_values(values)))
}

/// A column of whole numbers that may be missing.
pub fn optional(name: &'static str, values: impl IntoIterator<Item = Option<i64>>) -> Column {
    (name, Arc::new(Int64Array::from_iter(values)))
}

/// A column of numbers.
pub fn real(name: &'static str, values: impl IntoIterator<Item = f64>) -> Column {
    (name, Arc::new(Float64Array::from_iter_values(values)))
}

/// A column of numbers that may be missing.
pub fn optional_real(name: &'static str, values: impl IntoIterator<Item = Option<f64>>) -> Column {
    (name, Arc::new(Float64Array::from_iter(values)))
}

/// A column of truth values.
pub fn flag(name: &'static str, values: impl IntoIterator<Item = bool>) -> Column {
    (name, Arc::new(BooleanArray::from_iter(values.into_iter().map(Some))))
}

/// A column of words, most of which repeat.
pub fn word<'a>(name: &'static str, values: impl IntoIterator<Item = &'a str>) -> Column {
    let mut builder = StringDictionaryBuilder::<Int32Type>::new();
    values.into_iter().for_each(|value| builder.append_value(value));
    (name, Arc::new(builder.finish()))
}

impl Table {
    /// Makes a table of columns of equal length.
    pub fn of(columns: Vec<Column>) -> PyResult<Table> {
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, values)| Field::new(*name, values.data_type().clone(), values.is_nullable()))
            .collect();
        let values = columns.into_iter().map(|(_, values)| values).collect();
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), values);
        batch.map(|batch| Table { batch }).map_err(|error| errors::internal(&error.to_string()))
    }
}

/// Words of a column, one by one.
fn words(values: &dyn Array) -> Option<Vec<&str>> {
    if let Some(values) = values.as_any().downcast_ref::<StringArray>() {
        return Some(values.iter().map(|value| value.unwrap_or("")).collect());
    }
    let values = values.as_any().downcast_ref::<DictionaryArray<Int32Type>>()?;
    let words = values.values().as_any().downcast_ref::<StringArray>()?;
    Some(values.keys().iter().map(|key| key.map_or("", |key| words.value(key as usize))).collect())
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The table as an Arrow stream, which consumers read without copying the columns.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore the schema that a consumer asks for.
        let _ = requested_schema;
        let batches = vec![Ok::<_, ArrowError>(self.batch.clone())];
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The columns as NumPy arrays. Missing whole numbers become NaN.
    fn to_numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (field, values) in self.batch.schema().fields().iter().zip(self.batch.columns()) {
            let any = values.as_any();
            let array: Bound<'py, PyAny> = if let Some(words) = words(values) {
                py.import("numpy")?.call_method1("array", (words, "object"))?
            } else if let Some(values) = any.downcast_ref::<Int64Array>() {
                match values.null_count() {
                    0 => PyArray1::from_slice(py, values.values()).into_any(),
                    _ => {
                        let real = values.iter().map(|value| value.map_or(f64::NAN, |value| value as f64));
                        PyArray1::from_iter(py, real).into_any()
                    }
                }
            } else if let Some(values) = any.downcast_ref::<Float64Array>() {
                PyArray1::from_iter(py, values.iter().map(|value| value.unwrap_or(f64::NAN))).into_any()
            } else if let Some(values) = any.downcast_ref::<BooleanArray>() {
                PyArray1::from_iter(py, values.iter().map(|value| value.unwrap_or(false))).into_any()
            } else {
                return Err(errors::internal("a column of unknown type"));
            };
            columns.set_item(field.name(), array)?;
        }
        Ok(columns)
    }
}
