//! Keys whose value is a table with a `model`, which says which other keys it has; and the simplest of them, `gap`.

use temponet_task::{Gap, Time};
use temponet_wording::did_you_mean;

use super::{Context, Given, Key, Kind, Need, Read, Spec, Specs, Subject, Table, put};
use crate::Problem;
use crate::node::{Node, Value};
use crate::out::{Entries, Out, text, time};

/// Name of the model.
pub(super) const MODEL: Spec = Spec::new("model", Kind::Name, "").required();

/// A model with its keys.
pub(crate) struct Model<T: Subject, M: 'static> {
    pub name: &'static str,
    /// What it draws, in Markdown.
    pub doc: &'static str,
    /// Other keys of the task that it needs, in Markdown.
    pub needs: &'static str,
    /// Values of the key with this model, as TOML.
    pub examples: &'static [&'static str],
    pub table: Table<T>,
    /// Returns the values of the keys after `model`, in their order; none for another model.
    pub values: fn(&T::Source) -> Option<Vec<Out>>,
    /// Makes a value of the parameters.
    pub make: M,
}

/// The row of a key that [`Model`] itself writes.
pub(super) const fn parameter<T: Subject>(spec: Spec, read: Read<T>) -> Key<T> {
    Key::new(spec, read, |_, _| None)
}

/// The row of the name of the model.
pub(super) const fn model_row<T: Subject>() -> Key<T> {
    parameter(MODEL, |_, _| Ok(()))
}

impl<T: Subject, M> Model<T, M> {
    /// Reads the parameters. A value that is no table is the name of the model without any.
    pub fn read<'a>(&self, node: &'a Node, draft: &mut T::Draft<'a>, with: &'a Context<'a>) -> Result<(), Problem> {
        for key in self.table.keys {
            if let Need::Parameter(what) = key.spec.need
                && node.entry(key.spec.name).is_none()
            {
                return Err(self.needs(node.line, what));
            }
        }
        if matches!(node.value, Value::Table(_)) { self.table.read(node, draft, with) } else { Ok(()) }
    }

    /// Creates the error for something that is missing.
    pub fn needs(&self, line: usize, what: &str) -> Problem {
        Problem::at(line, format!("{} model {:?} needs {what}", self.table.what, self.name))
    }
}

/// Returns the name of the model of `execution = "uniform"` or `execution = { model = "uniform" }`.
pub(super) fn model_name<'a>(node: &'a Node, what: &str) -> Result<&'a str, Problem> {
    match &node.value {
        Value::Table(_) => {
            let missing = || Problem::at(node.line, format!("{what} has no {}", MODEL.name));
            node.entry(MODEL.name).ok_or_else(missing)?.text(MODEL.name)
        }
        _ => node.text(what),
    }
}

/// Returns the model that a value names.
pub(super) fn find<T: Subject, M>(
    models: &'static [Model<T, M>],
    node: &Node,
) -> Result<&'static Model<T, M>, Problem> {
    let what = models[0].table.what;
    let name = model_name(node, what)?;
    models.iter().find(|model| model.name == name).ok_or_else(|| {
        let known: Vec<&str> = models.iter().map(|model| model.name).collect();
        let hint = did_you_mean(name, known.iter().copied());
        Problem::at(node.line, format!("{what} model {name:?} is none of {}{hint}", known.join(", ")))
    })
}

/// Returns the value of a key with models: the name of the model if all its parameters have their defaults, otherwise a
/// table of the others.
pub(super) fn write<T: Subject, M>(models: &'static [Model<T, M>], source: &T::Source) -> Option<Out> {
    let (model, values) = models.iter().find_map(|model| Some((model, (model.values)(source)?)))?;
    let keys = model.table.keys.iter().map(|key| &key.spec);
    let given = keys.skip(1).zip(values).filter(|(spec, value)| !is_default(spec, value));
    let entries: Entries = std::iter::once((&model.table.keys[0].spec, text(model.name))).chain(given).collect();
    Some(if entries.len() == 1 { text(model.name) } else { Out::Table(entries) })
}

/// Returns whether a parameter has the number that holds without it.
fn is_default(spec: &Spec, value: &Out) -> bool {
    matches!((spec.need, value), (Need::Default(text), Out::Number(number)) if text == format!("`{number}`"))
}

/// Names and keys of models.
pub(super) fn described<T: Subject, M>(models: &'static [Model<T, M>]) -> Vec<(&'static str, Vec<&'static Spec>)> {
    models.iter().map(|model| (model.name, model.table.specs())).collect()
}

pub(crate) struct OfGap;

impl Subject for OfGap {
    type Draft<'a> = Option<Given<'a>>;
    type Source = Gap;
}

/// Makes the distribution of a time.
type MakeGap = fn(Time) -> Gap;

/// Distributions of the time between arrivals.
static GAPS: [Model<OfGap, MakeGap>; 2] = [
    Model {
        name: "uniform",
        doc: "uniform from the period to `max`",
        needs: "",
        examples: &["{ model = \"uniform\", max = 80 }"],
        table: Table {
            what: "gap",
            keys: &[
                model_row(),
                parameter(
                    Spec::new("max", Kind::Time, "longest time between arrivals, at least the period").required(),
                    |draft, given| put(draft, given.time().map(|_| given)),
                ),
            ],
        },
        values: |gap| if let Gap::Uniform { max } = gap { Some(vec![time(*max)]) } else { None },
        make: |max| Gap::Uniform { max },
    },
    Model {
        name: "exponential",
        doc: "the period plus an exponential time",
        needs: "",
        examples: &["{ model = \"exponential\", mean = 70 }"],
        table: Table {
            what: "gap",
            keys: &[
                model_row(),
                parameter(
                    Spec::new("mean", Kind::Time, "mean time between arrivals, at least the period").required(),
                    |draft, given| put(draft, given.time().map(|_| given)),
                ),
            ],
        },
        values: |gap| if let Gap::Exponential { mean } = gap { Some(vec![time(*mean)]) } else { None },
        make: |mean| Gap::Exponential { mean },
    },
];

/// Reads the distribution of gaps, none of which is shorter than `period`.
pub(crate) fn gap(node: &Node, period: Time, with: &Context<'_>) -> Result<Gap, Problem> {
    node.table(GAPS[0].table.what)?;
    let model = find(&GAPS, node)?;
    let mut stated = None;
    model.read(node, &mut stated, with)?;
    let Some(given) = stated else { return Err(model.needs(node.line, "a time")) };
    match given.time()? {
        time if time < period => Err(given.is(format_args!("is less than the period {period}"))),
        time => Ok((model.make)(time)),
    }
}

/// Keys of `gap` by model.
pub(super) fn gaps() -> Vec<(&'static str, Vec<&'static Spec>)> {
    described(&GAPS)
}

/// Returns the value of `gap`.
pub(super) fn write_gap(gap: &Gap) -> Option<Out> {
    write(&GAPS, gap)
}
