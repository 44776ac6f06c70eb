//! The files of a sweep besides its CSV: a Parquet file of the same rows, and a page with curves and tables.

use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use crate::stats::percent;
use crate::sweep::{PointSummary, SweepPlan, SweepRow};
use temponet_page::fragment::scrolling;
use temponet_page::{HtmlCell, HtmlTable, Page};

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

/// Returns the page: the curves, and the figures behind them.
pub fn page(plan: &SweepPlan, rows: &[SweepRow]) -> String {
    let summary = plan.summary(rows);
    let facts = format!(
        "{} sets at each of {} points, about {} jobs each, seed {}. Bold: the best scheduler of its row.",
        plan.sets,
        plan.points.len(),
        plan.jobs,
        plan.seed,
    );
    let curves = scrolling(&plan.picture(rows).inline());
    let mut page = Page::new("Schedulers over random task sets").kind("sweep").facts(&facts).section("", "", &curves);
    for (title, value) in PointSummary::KINDS {
        let mut table = HtmlTable::sortable().columns(&["load", "cores", "tasks"]);
        plan.names().iter().for_each(|name| table.column(name, "", ""));
        for (index, point) in plan.points.iter().enumerate() {
            let tasks = point.spec.tasks;
            let mut cells = vec![
                HtmlCell::figure(point.load.to_string(), Some(point.load)),
                HtmlCell::figure(point.spec.cores.to_string(), Some(point.spec.cores as f64)),
                HtmlCell::figure(tasks.map_or("–".into(), |tasks| tasks.to_string()), tasks.map(|tasks| tasks as f64)),
            ];
            let shares: Vec<Option<f64>> =
                summary.iter().map(|of| Some(of[index]).filter(|at| at.sets > 0).map(|at| value(&at))).collect();
            let best = shares[..plan.schedulers.len()].iter().flatten().copied().fold(f64::MIN, f64::max);
            cells.extend(shares.into_iter().enumerate().map(|(at, share)| {
                let cell = HtmlCell::figure(share.map_or("–".into(), percent), share);
                if at < plan.schedulers.len() && share == Some(best) { cell.class("best") } else { cell }
            }));
            table.row("", &cells);
        }
        page = page.section(title, "", &table.finish());
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::SweepPoint;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    use temponet_sim::generate::Spec;

    fn plan() -> (SweepPlan, Vec<SweepRow>) {
        let point = |load: f64| SweepPoint { load, spec: Spec::new(5, 2, 2.0 * load) };
        let schedulers = ["edf", "rm"].map(String::from).to_vec();
        let plan = SweepPlan {
            points: vec![point(0.5), point(1.25)],
            sets: 1,
            jobs: 100,
            schedulers,
            roster: crate::roster::Roster::classical(),
            seed: 1,
            oracle: Some(0.1),
        };
        let rows = (0..2).flat_map(|point| plan.run_set(point, 0, &[0, 1]).unwrap()).collect();
        (plan, rows)
    }

    #[test]
    fn parquet_reads_back_as_written() {
        let (plan, rows) = plan();
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

    #[test]
    fn the_page_shows_every_point_and_curve() {
        let (plan, rows) = plan();
        let page = page(&plan, &rows);
        assert!(page.contains(">1.25</td>") && page.matches("<polyline").count() == 8 && page.contains(">rm</button>"));
    }
}
