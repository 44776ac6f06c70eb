//! Execution times of a task: bounds, model and measured times, which must be consistent.

use std::path::Path;
use std::sync::Arc;

use temponet_task::{ExecutionModel, Task, Time};

use super::task::TaskReader;
use crate::Problem;
use crate::csv::Rows;
use crate::input::read_bytes;
use crate::node::{Fields, Node, Value};

impl TaskReader<'_> {
    /// Reads bcet, acet, wcet_high and the model, and checks that they are consistent.
    pub(super) fn execution_times(
        &self,
        fields: &mut Fields<'_>,
        task: &mut Task,
        model: Option<&Node>,
        samples: Option<Arc<[Time]>>,
    ) -> Result<(), Problem> {
        let unit = self.unit;
        let line = fields.line();
        let wrong = |message: String| Err(Problem::at(line, format!("task {:?}: {message}", task.name)));
        let bcet = fields.positive_time("bcet", unit)?;
        let acet = fields.positive_time("acet", unit)?;
        let wcet = task.wcet;
        if let Some(samples) = &samples {
            let longest = samples.iter().copied().max().unwrap_or_default();
            if longest > wcet {
                return wrong(format!("a measured time of {longest} is more than the wcet {wcet}"));
            }
        }
        let least_sample = samples.as_ref().and_then(|samples| samples.iter().copied().min());
        let name = model.map_or(Ok(None), model_name)?;
        let bcet = match (bcet, least_sample, acet, name) {
            (Some(bcet), ..) => bcet,
            (None, Some(least), ..) => least,
            (None, None, None, None | Some("wcet")) => wcet,
            _ => return wrong("execution times that vary need a bcet".into()),
        };
        if bcet > wcet {
            return wrong(format!("bcet {bcet} is more than the wcet {wcet}"));
        }
        if least_sample.is_some_and(|least| least < bcet) {
            return wrong(format!("a measured time is less than the bcet {bcet}"));
        }
        if acet.is_some_and(|acet| acet < bcet || acet > wcet) {
            let acet = acet.unwrap_or_default();
            return wrong(format!("acet {acet} is not between bcet {bcet} and wcet {wcet}"));
        }
        let execution = match (name, model) {
            (Some(_), Some(node)) => self.model(node, [bcet, wcet], acet, samples)?,
            _ if bcet == wcet => ExecutionModel::Wcet,
            _ if acet.is_some() => ExecutionModel::Weibull { exceed: DEFAULT_EXCEED },
            _ => ExecutionModel::Uniform,
        };
        let wcet_high = fields.take("wcet_high");
        let overrun = fields.take("overrun");
        let high = wcet_high.map(|node| node.positive_time("wcet_high", unit)).transpose()?;
        if high.is_some_and(|high| high < wcet) {
            return wrong(format!("wcet_high {} is less than the wcet {wcet}", high.unwrap_or_default()));
        }
        let execution = match overrun {
            None => execution,
            Some(node) if high.is_none() => return Err(Problem::at(node.line, "overrun needs a wcet_high")),
            Some(node) => match node.number("overrun", 0.0, 1.0)? {
                0.0 => execution,
                probability => ExecutionModel::Overrun { probability, below: Box::new(execution) },
            },
        };
        (task.bcet, task.acet, task.wcet_high, task.execution) = (bcet, acet, high, execution);
        Ok(())
    }

    /// Reads the model with its parameters.
    fn model(
        &self,
        node: &Node,
        bounds: [Time; 2],
        acet: Option<Time>,
        samples: Option<Arc<[Time]>>,
    ) -> Result<ExecutionModel, Problem> {
        let Some(name) = model_name(node)? else { return Ok(ExecutionModel::Wcet) };
        let table = matches!(node.value, Value::Table(_));
        let mut fields = if table { Some(Fields::of(node, "execution")?) } else { None };
        let mut take = |key| fields.as_mut().and_then(|fields| fields.take(key));
        take("model");
        let needs_acet = || match acet {
            Some(_) => Ok(()),
            None => Err(Problem::at(node.line, format!("execution model {name:?} needs an acet"))),
        };
        let within = |node: &Node, key: &'static str| match node.positive_time(key, self.unit)? {
            time if (bounds[0]..=bounds[1]).contains(&time) => Ok(time),
            time => {
                let [bcet, wcet] = bounds;
                Err(Problem::at(node.line, format!("{key} {time} is not between bcet {bcet} and wcet {wcet}")))
            }
        };
        let model = match name {
            "wcet" => ExecutionModel::Wcet,
            "uniform" => ExecutionModel::Uniform,
            "normal" => {
                let deviation = take("deviation")
                    .ok_or_else(|| Problem::at(node.line, "execution model \"normal\" needs a deviation"))?;
                ExecutionModel::Normal { deviation: deviation.positive_time("deviation", self.unit)? }
            }
            "weibull" => {
                needs_acet()?;
                let exceed = take("exceed").map(|node| node.number("exceed", 1e-9, 0.5)).transpose()?;
                ExecutionModel::Weibull { exceed: exceed.unwrap_or(DEFAULT_EXCEED) }
            }
            "pareto" => {
                let shape = take("shape").map(|node| node.number("shape", 0.01, 100.0)).transpose()?;
                ExecutionModel::Pareto { shape: shape.unwrap_or(2.0) }
            }
            "lognormal" => {
                let sigma = take("sigma")
                    .ok_or_else(|| Problem::at(node.line, "execution model \"lognormal\" needs a sigma"))?;
                let sigma = sigma.number("sigma", 0.0, Task::MOST_SPREAD)?;
                let median = match (take("median"), acet) {
                    (Some(node), _) => within(node, "median")?,
                    // The mean before values are moved to the bounds.
                    (None, Some(acet)) => Time((acet.0 as f64 * (-sigma * sigma / 2.0).exp()).round().max(1.0) as u64),
                    (None, None) => {
                        let needs = "execution model \"lognormal\" needs a median, or an acet, which is its mean";
                        return Err(Problem::at(node.line, needs));
                    }
                };
                ExecutionModel::Lognormal { median, sigma }
            }
            "bimodal" => {
                let needs = |key: &str| Problem::at(node.line, format!("execution model \"bimodal\" needs {key}"));
                let levels = take("levels").ok_or_else(|| needs("levels"))?;
                let [first, second] = levels.list("levels")? else {
                    return Err(Problem::at(levels.line, format!("levels = {} are not two times", levels.shown())));
                };
                let levels = [within(first, "levels")?, within(second, "levels")?];
                let probability = take("probability").ok_or_else(|| needs("a probability of the second level"))?;
                let probability = probability.number("probability", 0.0, 1.0)?;
                let spread = take("spread").map(|node| node.number("spread", 0.0, Task::MOST_SPREAD)).transpose()?;
                ExecutionModel::Bimodal { levels, probability, spread: spread.unwrap_or(0.0) }
            }
            "empirical" => {
                for key in ["file", "column", "samples"] {
                    take(key);
                }
                let samples = samples
                    .ok_or_else(|| Problem::at(node.line, "execution model \"empirical\" needs a file and a column"))?;
                ExecutionModel::Empirical { samples }
            }
            other => {
                let known = "wcet, uniform, normal, weibull, pareto, lognormal, bimodal, empirical";
                return Err(Problem::at(node.line, format!("execution model {other:?} is none of {known}")));
            }
        };
        if let Some(fields) = fields {
            fields.finish()?;
        }
        Ok(model)
    }

    /// Reads the measured times of `execution = { model = "empirical", … }`.
    pub(super) fn samples(&mut self, execution: Option<&Node>) -> Result<Option<Arc<[Time]>>, Problem> {
        let Some(node) = execution.filter(|node| matches!(node.value, Value::Table(_))) else { return Ok(None) };
        if model_name(node)? != Some("empirical") {
            return Ok(None);
        }
        let mut fields = Fields::of(node, "execution")?;
        let samples: Vec<Time> = match (fields.take("samples"), fields.take("file")) {
            (Some(list), None) => {
                let items = list.list("samples")?.iter();
                items.map(|item| item.positive_time("samples", self.unit)).collect::<Result<_, _>>()?
            }
            (None, Some(file)) => {
                let column = fields.need("column")?.text("column")?;
                let path = self.origin.with_file_name(file.text("file")?);
                let times = self.measured(&path, file.line, column)?;
                self.files.push(path);
                times
            }
            _ => return Err(Problem::at(node.line, "an empirical model has either samples, or a file and a column")),
        };
        if samples.is_empty() {
            return Err(Problem::at(node.line, "an empirical model without a single measured time"));
        }
        Ok(Some(samples.into()))
    }

    /// Reads a column of a CSV file as times. `line` is the line that refers to the file.
    fn measured(&self, path: &Path, line: usize, wanted: &str) -> Result<Vec<Time>, Problem> {
        let cannot = |why: String| Problem::at(line, format!("cannot read {}: {why}", path.display()));
        // A device or a pipe may never end.
        if path.metadata().is_ok_and(|kind| !kind.is_file()) {
            return Err(cannot("it is no ordinary file".into()));
        }
        let bytes = read_bytes(path).map_err(|error| cannot(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| cannot("it is not UTF-8 text".into()))?;
        let in_file = |problem: Problem| Problem { file: Some(path.display().to_string()), ..problem };
        let mut rows = Rows::of(&text).map_err(in_file)?;
        let key = rows.key_of(wanted);
        let key = key.ok_or_else(|| Problem::at(line, format!("{} has no column {wanted:?}", path.display())))?;
        let mut times = Vec::new();
        while let Some(row) = rows.next_row().map_err(in_file)? {
            let cell = row.table("row")?.entries.iter().find(|(column, _)| *column == key);
            let (_, cell) = cell.ok_or_else(|| in_file(Problem::at(row.line, format!("{wanted} is empty"))))?;
            times.push(cell.positive_time(wanted, self.unit).map_err(in_file)?);
        }
        Ok(times)
    }
}

/// Default share of a Weibull distribution beyond the wcet.
const DEFAULT_EXCEED: f64 = 0.005;

/// Returns the name of the model of `execution = "uniform"` or `execution = { model = "uniform" }`.
fn model_name(node: &Node) -> Result<Option<&str>, Problem> {
    match &node.value {
        Value::Table(table) => match table.entries.iter().find(|(key, _)| key == "model") {
            Some((_, model)) => model.text("model").map(Some),
            None => Err(Problem::at(node.line, "execution has no model")),
        },
        _ => node.text("execution").map(Some),
    }
}
