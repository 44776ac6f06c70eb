//! Keys of `execution`: the models of execution times and their parameters.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use temponet_task::{ExecutionModel, Task, Time, TimeError};

use super::models::{MODEL, Model, described, find, model_row, parameter, write};
use super::{Context, Given, Key, Kind, Need, Spec, Subject, Table, put, set};
use crate::Problem;
use crate::csv::Rows;
use crate::input::read_bytes;
use crate::node::{Node, Value};
use crate::out::{Out, time};

/// Name of the key.
pub(super) const EXECUTION: &str = "execution";

/// Parameters of a model of execution times.
#[derive(Default)]
pub(crate) struct Parameters<'a> {
    deviation: Time,
    exceed: Option<f64>,
    shape: Option<f64>,
    median: Option<Given<'a>>,
    sigma: f64,
    levels: Vec<Given<'a>>,
    probability: f64,
    spread: f64,
    /// Measured times, written out.
    samples: Option<Vec<Time>>,
    /// CSV file with measured times, and its column.
    file: Option<Given<'a>>,
    column: Option<&'a str>,
}

/// Bounds on the execution times of a task.
pub(crate) struct Bounds {
    pub bcet: Time,
    pub wcet: Time,
    pub acet: Option<Time>,
    /// Measured times, if the model has them.
    pub samples: Option<Arc<[Time]>>,
}

impl Bounds {
    /// Returns a time between bcet and wcet.
    fn within(&self, given: Given<'_>) -> Result<Time, Problem> {
        let (Bounds { bcet, wcet, .. }, time) = (self, given.time()?);
        match (*bcet..=*wcet).contains(&time) {
            true => Ok(time),
            false => {
                let message = format!("{} {time} is not between bcet {bcet} and wcet {wcet}", given.name);
                Err(Problem::at(given.node.line, message))
            }
        }
    }
}

pub(crate) struct OfExecution;

impl Subject for OfExecution {
    type Draft<'a> = Parameters<'a>;
    type Source = ExecutionModel;
}

/// Makes a model of its parameters within bounds. The last argument creates the error for something that is missing.
type Make = fn(&Parameters<'_>, &Bounds, &dyn Fn(&str) -> Problem) -> Result<ExecutionModel, Problem>;
type Row = Key<OfExecution>;

const SPREAD: Kind = Kind::Number(0.0, Task::MOST_SPREAD);
/// Default share of a Weibull distribution beyond the wcet.
const DEFAULT_EXCEED: f64 = 0.005;

const fn with(keys: &'static [Row]) -> Table<OfExecution> {
    Table { what: EXECUTION, keys }
}

/// Models of the execution times.
pub(crate) static MODELS: [Model<OfExecution, Make>; 8] = [
    Model {
        name: "wcet",
        doc: "always the wcet",
        needs: "",
        examples: &["\"wcet\""],
        table: with(&[model_row()]),
        values: |model| matches!(model, ExecutionModel::Wcet | ExecutionModel::Overrun { .. }).then(Vec::new),
        make: |_, _, _| Ok(ExecutionModel::Wcet),
    },
    Model {
        name: "uniform",
        doc: "uniform from bcet to wcet",
        needs: "`bcet`",
        examples: &["\"uniform\""],
        table: with(&[model_row()]),
        values: |model| (*model == ExecutionModel::Uniform).then(Vec::new),
        make: |_, _, _| Ok(ExecutionModel::Uniform),
    },
    Model {
        name: "normal",
        doc: "normal around `acet` (or the middle), within the bounds",
        needs: "`bcet`",
        examples: &["{ model = \"normal\", deviation = \"2ms\" }"],
        table: with(&[
            model_row(),
            parameter(
                Spec::new("deviation", Kind::PositiveTime, "standard deviation").parameter("a deviation"),
                |draft, given| set(&mut draft.deviation, given.time()),
            ),
        ]),
        values: |model| match model {
            ExecutionModel::Normal { deviation } => Some(vec![time(*deviation)]),
            _ => None,
        },
        make: |given, _, _| Ok(ExecutionModel::Normal { deviation: given.deviation }),
    },
    Model {
        name: "weibull",
        doc: "Weibull from bcet with mean acet, where a share `exceed` of the distribution lies beyond the wcet (the WATERS 2015 estimator), within the bounds",
        needs: "`bcet`, `acet`",
        examples: &["{ model = \"weibull\", exceed = 0.005 }"],
        table: with(&[
            model_row(),
            parameter(
                Spec::new("exceed", Kind::Number(1e-9, 0.5), "share of the distribution beyond the wcet")
                    .default("`0.005`"),
                |draft, given| put(&mut draft.exceed, given.number()),
            ),
        ]),
        values: |model| match model {
            ExecutionModel::Weibull { exceed } => Some(vec![Out::Number(*exceed)]),
            _ => None,
        },
        make: |given, bounds, needs| match bounds.acet {
            Some(_) => Ok(ExecutionModel::Weibull { exceed: given.exceed.unwrap_or(DEFAULT_EXCEED) }),
            None => Err(needs("an acet")),
        },
    },
    Model {
        name: "pareto",
        doc: "Pareto from bcet, within the bounds",
        needs: "`bcet`",
        examples: &["{ model = \"pareto\", shape = 2.0 }"],
        table: with(&[
            model_row(),
            parameter(Spec::new("shape", Kind::Number(0.01, 100.0), "tail index").default("`2`"), |draft, given| {
                put(&mut draft.shape, given.number())
            }),
        ]),
        values: |model| match model {
            ExecutionModel::Pareto { shape } => Some(vec![Out::Number(*shape)]),
            _ => None,
        },
        make: |given, _, _| Ok(ExecutionModel::Pareto { shape: given.shape.unwrap_or(2.0) }),
    },
    Model {
        name: "lognormal",
        doc: "log-normal, where `sigma` is the standard deviation of the logarithm; without `median`, the `acet` is the mean; times beyond the bounds are moved to them",
        needs: "`bcet`",
        examples: &["{ model = \"lognormal\", median = \"4ms\", sigma = 0.5 }"],
        table: with(&[
            model_row(),
            parameter(
                Spec::new("median", Kind::PositiveTime, "median, between bcet and wcet")
                    .default("that of the mean `acet`"),
                |draft, given| put(&mut draft.median, given.time().map(|_| given)),
            ),
            parameter(
                Spec::new("sigma", SPREAD, "standard deviation of the logarithm").parameter("a sigma"),
                |draft, given| set(&mut draft.sigma, given.number()),
            ),
        ]),
        values: |model| match model {
            ExecutionModel::Lognormal { median, sigma } => Some(vec![time(*median), Out::Number(*sigma)]),
            _ => None,
        },
        make: |given, bounds, needs| {
            let sigma = given.sigma;
            let median = match (given.median, bounds.acet) {
                (Some(median), _) => bounds.within(median)?,
                // The mean before values are moved to the bounds.
                (None, Some(acet)) => Time((acet.0 as f64 * (-sigma * sigma / 2.0).exp()).round().max(1.0) as u64),
                (None, None) => return Err(needs("a median, or an acet, which is its mean")),
            };
            Ok(ExecutionModel::Lognormal { median, sigma })
        },
    },
    Model {
        name: "bimodal",
        doc: "the second level with this probability, otherwise the first; log-normal around it with `sigma = spread`; times beyond the bounds are moved to them",
        needs: "`bcet`",
        examples: &["{ model = \"bimodal\", levels = [\"2ms\", \"9ms\"], probability = 0.1, spread = 0.05 }"],
        table: with(&[
            model_row(),
            parameter(
                Spec::new(
                    "levels",
                    Kind::List(&Kind::PositiveTime, 2, 2),
                    "medians of the two levels, between bcet and wcet",
                )
                .parameter("levels"),
                |draft, given| {
                    draft.levels = given.items()?.collect();
                    match draft.levels.len() {
                        2 => Ok(()),
                        _ => Err(given.is("are not two times")),
                    }
                },
            ),
            parameter(
                Spec::new("probability", Kind::Number(0.0, 1.0), "probability of the second level")
                    .parameter("a probability of the second level"),
                |draft, given| set(&mut draft.probability, given.number()),
            ),
            parameter(
                Spec::new("spread", SPREAD, "standard deviation of the logarithm around either level").default("`0`"),
                |draft, given| set(&mut draft.spread, given.number()),
            ),
        ]),
        values: |model| match model {
            ExecutionModel::Bimodal { levels, probability, spread } => {
                Some(vec![Out::list(levels.map(time)), Out::Number(*probability), Out::Number(*spread)])
            }
            _ => None,
        },
        make: |given, bounds, _| {
            let (probability, spread) = (given.probability, given.spread);
            let levels = [bounds.within(given.levels[0])?, bounds.within(given.levels[1])?];
            Ok(ExecutionModel::Bimodal { levels, probability, spread })
        },
    },
    Model {
        name: "empirical",
        doc: "drawn from measured times: those of a CSV file in the same folder as this one, or `samples`",
        needs: "",
        examples: &[
            "{ model = \"empirical\", file = \"times.csv\", column = \"time_us\" }",
            "{ model = \"empirical\", samples = [\"1ms\", \"1.3ms\"] }",
        ],
        table: with(&[
            model_row(),
            parameter(
                Spec::new("samples", Kind::List(&Kind::PositiveTime, 1, usize::MAX), "measured times")
                    .unless(&["file"]),
                |draft, given| put(&mut draft.samples, given.items()?.map(|item| item.time()).collect()),
            ),
            parameter(
                Spec::new("file", Kind::Text, "CSV file with measured times").unless(&["samples"]),
                |draft, given| put(&mut draft.file, given.text().map(|_| given)),
            ),
            parameter(Spec::new("column", Kind::Text, "its column").unless(&["samples"]), |draft, given| {
                put(&mut draft.column, given.text())
            }),
        ]),
        values: |model| match model {
            ExecutionModel::Empirical { samples } => Some(vec![Out::list(samples.iter().copied().map(time))]),
            _ => None,
        },
        make: |_, bounds, needs| match &bounds.samples {
            Some(samples) => Ok(ExecutionModel::Empirical { samples: samples.clone() }),
            None => Err(needs("a file and a column")),
        },
    },
];

/// Names of the models that need no parameters.
pub(super) fn names() -> Vec<&'static str> {
    let is_optional = |key: &Row| key.spec.name == MODEL.name || matches!(key.spec.need, Need::Default(_));
    let needs_none = MODELS.iter().filter(|model| model.table.keys.iter().all(is_optional));
    needs_none.map(|model| model.name).collect()
}

/// Keys of `execution` by model.
pub(super) fn specs() -> Vec<(&'static str, Vec<&'static Spec>)> {
    described(&MODELS)
}

/// Returns the value of `execution`.
pub(super) fn write_model(model: &ExecutionModel) -> Option<Out> {
    write(&MODELS, model)
}

/// Reads the name of the model. A name of none is an error.
pub(crate) fn named_model(node: &Node) -> Result<&'static str, Problem> {
    find(&MODELS, node).map(|model| model.name)
}

/// Returns the model that a task has if it names none.
pub(crate) fn default_model(bounds: &Bounds) -> ExecutionModel {
    match bounds.acet {
        _ if bounds.bcet == bounds.wcet => ExecutionModel::Wcet,
        Some(_) => ExecutionModel::Weibull { exceed: DEFAULT_EXCEED },
        None => ExecutionModel::Uniform,
    }
}

/// Reads the model with its parameters.
pub(crate) fn model(node: &Node, bounds: &Bounds, with: &Context<'_>) -> Result<ExecutionModel, Problem> {
    let model = find(&MODELS, node)?;
    let mut parameters = Parameters::default();
    model.read(node, &mut parameters, with)?;
    (model.make)(&parameters, bounds, &|what| model.needs(node.line, what))
}

/// Measured times.
pub(crate) struct Measured {
    pub times: Arc<[Time]>,
    /// File that has them, if they are not written out.
    pub file: Option<PathBuf>,
}

/// Reads the measured times of `execution = { model = "empirical", … }`.
pub(crate) fn samples(node: &Node, with: &Context<'_>) -> Result<Option<Measured>, Problem> {
    let name = if matches!(node.value, Value::Table(_)) { Some(named_model(node)?) } else { None };
    let Some(model) = MODELS.last().filter(|model| Some(model.name) == name) else { return Ok(None) };
    let mut given = Parameters::default();
    model.read(node, &mut given, with)?;
    let (samples, file) = match (given.samples, given.file) {
        (Some(samples), None) => (samples, None),
        (None, Some(file)) => {
            let missing = || Problem::at(node.line, format!("{EXECUTION} has no column"));
            let path = with.origin.with_file_name(file.text()?);
            (measured(&path, file, given.column.ok_or_else(missing)?)?, Some(path))
        }
        _ => return Err(Problem::at(node.line, "an empirical model has either samples, or a file and a column")),
    };
    match samples.is_empty() {
        true => Err(Problem::at(node.line, "an empirical model without a single measured time")),
        false => Ok(Some(Measured { times: samples.into(), file })),
    }
}

/// Reads a column of a CSV file as times. `file` refers to it.
fn measured(path: &Path, file: Given<'_>, wanted: &str) -> Result<Vec<Time>, Problem> {
    let line = file.node.line;
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
        let cell = row.entry(&key);
        let cell = cell.ok_or_else(|| in_file(Problem::at(row.line, format!("{wanted} is empty"))))?;
        // The file may be any that the user can read: what is no number is not quoted.
        let is_number = |time| !matches!(time, Err(TimeError::NotATime | TimeError::UnknownUnit));
        if !is_number(Time::parse(&cell.shown(), file.with.unit)) {
            let why = format!("{wanted} is not a time: write a number, or a number with ns, us, ms or s");
            return Err(in_file(Problem::at(cell.line, why)));
        }
        times.push(cell.positive_time(wanted, file.with.unit).map_err(in_file)?);
    }
    Ok(times)
}
