//! The rows of a sweep as a Parquet file. Only with the feature `parquet`, because the format's crates take longer to
//! compile than the rest of the lab.

use std::sync::Arc;

use ::parquet::basic::Compression;
use ::parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::parser::parse_message_type;

use super::{SweepPlan, SweepRow};

const SCHEMA: &str = "message sweep {
    required double load; required int64 cores; required int64 tasks; required int64 set;
    required binary scheduler (UTF8); required int64 released; required int64 met;
}";

/// Returns the rows as a Parquet file with the columns of the CSV. `tasks` is 0 if the generator chose the number of
/// tasks.
pub fn parquet(plan: &SweepPlan, rows: &[SweepRow]) -> Result<Vec<u8>, ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = WriterProperties::builder().set_compression(Compression::UNCOMPRESSED).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let spec = |row: &SweepRow| &plan.points[row.point].spec;
    let whole = |of: &dyn Fn(&SweepRow) -> u64| rows.iter().map(|row| of(row) as i64).collect::<Vec<i64>>();
    let mut group = writer.next_row_group()?;
    column::<DoubleType>(&mut group, &rows.iter().map(|row| plan.points[row.point].load).collect::<Vec<_>>())?;
    column::<Int64Type>(&mut group, &whole(&|row| spec(row).cores as u64))?;
    column::<Int64Type>(&mut group, &whole(&|row| spec(row).tasks.unwrap_or(0) as u64))?;
    column::<Int64Type>(&mut group, &whole(&|row| row.set))?;
    let names = plan.names();
    let schedulers = rows.iter().map(|row| ByteArray::from(names[row.scheduler].as_str()));
    column::<ByteArrayType>(&mut group, &schedulers.collect::<Vec<_>>())?;
    column::<Int64Type>(&mut group, &whole(&|row| row.released))?;
    column::<Int64Type>(&mut group, &whole(&|row| row.met))?;
    group.close()?;
    writer.into_inner()
}

fn column<T: DataType>(group: &mut SerializedRowGroupWriter<'_, Vec<u8>>, values: &[T::T]) -> Result<(), ParquetError> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, None, None)?;
        column.close()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};
    use ::parquet::record::Field;

    use super::*;
    use crate::sweep::tests::small_sweep;

    #[test]
    fn parquet_reads_back_as_written() {
        let (plan, rows) = small_sweep();
        let bytes = parquet(&plan, &rows).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let read: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(read.len(), rows.len());
        for (read, row) in read.iter().zip(&rows) {
            let fields: Vec<Field> = read.get_column_iter().map(|(_, field)| field.clone()).collect();
            let expected = [
                Field::Double(plan.points[row.point].load),
                Field::Long(2),
                Field::Long(5),
                Field::Long(row.set as i64),
                Field::Str(plan.names()[row.scheduler].clone()),
                Field::Long(row.released as i64),
                Field::Long(row.met as i64),
            ];
            assert_eq!(fields, expected);
        }
    }
}
