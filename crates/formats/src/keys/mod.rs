//! The keys of task-set files: one [`Table`] for each kind of table in a file, one row for each key.
//!
//! A row has all that there is to say about its key: name, kind of value with its range, default, description, whether
//! CSV has it, how to read it and how to write it. Reader, writer, CSV, template, JSON schema and the key tables of
//! `docs/task-sets.md` iterate over these rows. So a new attribute of a task is one row here and a field in
//! `temponet-task`.
//!
//! A row reads one value and knows no other. What follows from several keys of a table, such as bounds on execution
//! times, is checked in `read/` once all of them are known.

mod burst;
mod estimate;
mod execution;
mod jobs;
mod links;
mod machine;
mod mode;
mod models;
mod parts;
mod preemption;
mod sections;
mod set;
mod task;

use std::path::Path;

use temponet_task::{Core, Server, System, TaskSet, Time, TimeUnit};

use crate::Problem;
use crate::node::{Fields, Node};
use crate::out::{Entries, Out};

pub(crate) use burst::BURST;
use execution::EXECUTION;
pub(crate) use execution::{Bounds, MODELS, Measured, default_model, model, named_model, samples};
pub(crate) use jobs::{AMBIGUOUS, JOB, JobDraft, JobRow, RELEASE, SYNONYMS};
pub(crate) use links::{CHAIN, Named, TaskIds};
pub(crate) use machine::{CORE, CoreGroup, implied_cores};
pub(crate) use mode::{MODE, ModeDraft};
pub(crate) use models::gap;
pub(crate) use parts::{PART, PARTS_KEY};
pub(crate) use sections::{SECTION, SECTIONS};
use set::COMMUNICATION;
pub(crate) use set::{COSTS, SERVER, SET, SetDraft, TIME_UNIT, unknown_server};
pub(crate) use task::{DEADLINE, GUARANTEE, OFFSET, OWN_NAME, PERIOD, PRIORITY, TASK, TaskDraft, default_gap};

/// Largest number of cores.
pub(crate) const MOST_CORES: i64 = System::MOST_CORES as i64;

/// Description of a key: everything but how it is read and written.
#[derive(Clone, Copy)]
pub(crate) struct Spec {
    pub name: &'static str,
    /// Name of its column in CSV, which other formats have as well, if it is not `name`.
    pub alias: Option<&'static str>,
    pub kind: Kind,
    pub need: Need,
    /// What the value says, in Markdown, without a full stop.
    pub doc: &'static str,
    /// Section of `docs/task-sets.md` or another page that says more, as the target of a link; empty if there is none.
    pub see: &'static str,
    /// Value for the template, as TOML.
    pub example: &'static str,
    pub csv: Csv,
    /// What a workload of rt-app loses without it, with its verb, `{name} is` if empty; none if it has it.
    pub lost: Option<&'static str>,
    /// Place among the keys of a file: lower ranks come first, equal ones in the order of the rows.
    pub rank: u8,
}

/// Whether a table has to have a key.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    Required,
    /// Required unless there is a key with one of these names.
    Unless(&'static [&'static str]),
    /// Required by its model, which needs this, in words.
    Parameter(&'static str),
    /// What holds without the key: a JSON value in backticks, or words.
    Default(&'static str),
}

/// Place of a key in a CSV file.
#[derive(Clone, Copy)]
pub(crate) enum Csv {
    /// A column whose cells are the values. Items of a list have this between them.
    Column(&'static str),
    /// Left out of the file, which means the same without it.
    Omitted,
    /// None: a set with this, in these words, cannot be written.
    Refused(&'static str),
}

/// Kind of a value, with its range.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    Text,
    /// Printable text.
    Name,
    /// Name of something that the file has elsewhere.
    Reference,
    /// Time from zero on.
    Time,
    /// Time greater than zero.
    PositiveTime,
    /// Finite number from the least to the most.
    Number(f64, f64),
    /// Whole number from the least to the most.
    Integer(i64, i64),
    Bool,
    /// One of these words.
    Word(fn() -> Vec<&'static str>),
    /// Two whole numbers in a text, with a slash between them.
    Fraction,
    /// List with at least and at most this many items of a kind.
    List(&'static Kind, usize, usize),
    /// A table whose keys are names of tasks, with values of a kind.
    Named(&'static Kind),
    /// A table with these keys.
    Table(&'static (dyn Specs + Sync)),
    /// Table whose `model` names one of these sets of keys.
    Models(fn() -> Vec<(&'static str, Vec<&'static Spec>)>),
    /// One of these kinds.
    Either(&'static [Kind]),
}

impl Spec {
    /// Creates the description of an optional key that CSV has a column for.
    pub const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Spec {
        let (need, csv, lost) = (Need::Default("none"), Csv::Column(""), Some(""));
        Spec { name, alias: None, kind, need, doc, see: "", example: "", csv, lost, rank: 9 }
    }

    pub const fn required(self) -> Spec {
        Spec { need: Need::Required, ..self }
    }

    pub const fn unless(self, others: &'static [&'static str]) -> Spec {
        Spec { need: Need::Unless(others), ..self }
    }

    pub const fn parameter(self, what: &'static str) -> Spec {
        Spec { need: Need::Parameter(what), ..self }
    }

    pub const fn default(self, text: &'static str) -> Spec {
        Spec { need: Need::Default(text), ..self }
    }

    pub const fn doc(self, doc: &'static str) -> Spec {
        Spec { doc, ..self }
    }

    pub const fn see(self, target: &'static str) -> Spec {
        Spec { see: target, ..self }
    }

    pub const fn example(self, toml: &'static str) -> Spec {
        Spec { example: toml, ..self }
    }

    pub const fn csv(self, csv: Csv) -> Spec {
        Spec { csv, ..self }
    }

    pub const fn lost(self, lost: Option<&'static str>) -> Spec {
        Spec { lost, ..self }
    }

    pub const fn rank(self, rank: u8) -> Spec {
        Spec { rank, ..self }
    }

    /// Returns the names by which files have the key.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        [Some(self.name), self.alias].into_iter().flatten()
    }

    /// Returns the name of its column in CSV, if it has one.
    pub fn column(&self) -> Option<&'static str> {
        match (self.csv, self.kind) {
            (Csv::Refused(_) | Csv::Omitted, _) | (_, Kind::Models(_)) => None,
            (Csv::Column(_), _) => Some(self.alias.unwrap_or(self.name)),
        }
    }
}

/// What the tables of one kind are about.
pub(crate) trait Subject: 'static {
    /// Values of a table that is being read.
    type Draft<'a>;
    /// Part of a task set that a table is written from.
    type Source;
}

/// Tables whose values are read into a `D` and written from an `S`.
pub(crate) struct Plain<D, S>(std::marker::PhantomData<(D, S)>);

impl<D: 'static, S: 'static> Subject for Plain<D, S> {
    type Draft<'a> = D;
    type Source = S;
}

/// Stores a value in a draft.
pub(crate) type Read<T> = for<'a> fn(&mut <T as Subject>::Draft<'a>, Given<'a>) -> Result<(), Problem>;
/// Returns a value of a part of a set; none where it is the default.
pub(crate) type Write<T> = fn(&TaskSet, &<T as Subject>::Source) -> Option<Out>;

/// A key with its reader and its writer.
pub(crate) struct Key<T: Subject> {
    pub spec: Spec,
    read: Read<T>,
    write: Write<T>,
}

impl<T: Subject> Key<T> {
    pub const fn new(spec: Spec, read: Read<T>, write: Write<T>) -> Key<T> {
        Key { spec, read, write }
    }

    /// Reads the value of the key from a file in which it may have another name.
    pub fn set<'a>(
        &self,
        draft: &mut T::Draft<'a>,
        name: &'static str,
        node: &'a Node,
        with: &'a Context<'a>,
    ) -> Result<(), Problem> {
        (self.read)(draft, Given { name, kind: self.spec.kind, node, with })
    }
}

/// The keys of one kind of table.
pub(crate) struct Table<T: Subject> {
    /// What messages call such a table.
    pub what: &'static str,
    pub keys: &'static [Key<T>],
}

/// A table whose keys are described, whatever it is about.
pub(crate) trait Specs {
    fn specs(&self) -> Vec<&'static Spec>;
}

impl<T: Subject> Specs for Table<T> {
    fn specs(&self) -> Vec<&'static Spec> {
        self.keys.iter().map(|key| &key.spec).collect()
    }
}

impl<T: Subject> Table<T> {
    /// Reads a table of a file into `draft`. Unknown keys, missing ones and wrong values are refused.
    pub fn read<'a>(&self, node: &'a Node, draft: &mut T::Draft<'a>, with: &'a Context<'a>) -> Result<(), Problem> {
        let known: Vec<&str> = self.keys.iter().flat_map(|key| key.spec.names()).collect();
        let mut fields = Fields::of(node, self.what)?.only(&known)?;
        for key in self.keys {
            for name in key.spec.names() {
                match fields.take(name) {
                    Some(node) => key.set(draft, name, node, with)?,
                    None if matches!(key.spec.need, Need::Required) => return Err(fields.missing(name)),
                    None => {}
                }
            }
        }
        fields.finish()
    }

    /// Returns the entries of a table of a file, in the order of the file. Defaults are left out.
    pub fn entries(&self, set: &TaskSet, source: &T::Source) -> Entries {
        let written = |key: &'static Key<T>| Some((&key.spec, (key.write)(set, source)?));
        let mut entries: Entries = self.keys.iter().filter_map(written).collect();
        entries.sort_by_key(|(spec, _)| spec.rank);
        entries
    }

    /// Returns the list of the tables of `sources`; none if there are none.
    pub fn list<'a>(&self, set: &TaskSet, sources: impl IntoIterator<Item = &'a T::Source>) -> Option<Out> {
        let tables: Vec<Out> = sources.into_iter().map(|source| Out::Table(self.entries(set, source))).collect();
        (!tables.is_empty()).then_some(Out::List(tables))
    }
}

/// What the values of a file can refer to.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    /// Unit of bare numbers.
    pub unit: TimeUnit,
    /// Path of the file.
    pub origin: &'a Path,
    pub servers: &'a [Server],
    /// Cores with names; none if they have none.
    pub machine: &'a [Core],
    /// Number of cores.
    pub cores: usize,
    /// Set with all tasks, for tables that come after them; none before.
    pub tasks: Option<(&'a TaskSet, &'a TaskIds)>,
}

impl Context<'_> {
    /// Context of a file without names to refer to.
    pub fn plain(unit: TimeUnit) -> Context<'static> {
        let (servers, machine, cores) = (&[], &[], System::MOST_CORES);
        Context { unit, origin: Path::new(""), servers, machine, cores, tasks: None }
    }
}

/// A value that a file gives to a key.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    /// Name of the key in this file.
    pub name: &'static str,
    pub kind: Kind,
    pub node: &'a Node,
    pub with: &'a Context<'a>,
}

impl<'a> Given<'a> {
    /// Creates the error for this value; the message begins with it.
    pub fn is(&self, problem: impl std::fmt::Display) -> Problem {
        Problem::at(self.node.line, format!("{} = {} {problem}", self.name, self.node.written()))
    }

    pub fn text(&self) -> Result<&'a str, Problem> {
        self.node.text(self.name)
    }

    /// Returns a name without surrounding spaces. It must be printable.
    pub fn printable(&self) -> Result<String, Problem> {
        printable(self.text()?, self.node.line)
    }

    /// Returns a time of the kind of this value.
    pub fn time(&self) -> Result<Time, Problem> {
        match self.kind {
            Kind::PositiveTime => self.node.positive_time(self.name, self.with.unit),
            _ => self.node.time(self.name, self.with.unit),
        }
    }

    /// Returns a number within the range of this value.
    pub fn number(&self) -> Result<f64, Problem> {
        let Kind::Number(least, most) = self.kind else { return Err(self.is("is not a number")) };
        self.node.number(self.name, least, most)
    }

    /// Returns a whole number within the range of this value, or of the first of its kinds that has one.
    pub fn integer(&self) -> Result<i64, Problem> {
        let range = |kind: &Kind| if let Kind::Integer(least, most) = kind { Some((*least, *most)) } else { None };
        let found = if let Kind::Either(kinds) = self.kind { kinds.iter().find_map(range) } else { range(&self.kind) };
        let (least, most) = found.ok_or_else(|| self.is("is not a whole number"))?;
        self.node.integer(self.name, least, most)
    }

    pub fn boolean(&self) -> Result<bool, Problem> {
        self.node.boolean(self.name)
    }

    /// Returns what one of the words of this kind stands for.
    pub fn word<V>(&self, of: fn(&str) -> Option<V>) -> Result<V, Problem> {
        let Kind::Word(words) = self.kind else { return Err(self.is("is not a word")) };
        of(self.text()?).ok_or_else(|| self.is(format_args!("is none of {}", words().join(", "))))
    }

    /// Returns the items of a list.
    pub fn items(&self) -> Result<impl Iterator<Item = Given<'a>> + use<'a>, Problem> {
        let kind = if let Kind::List(kind, ..) = self.kind { *kind } else { self.kind };
        let given = *self;
        Ok(self.node.list(self.name)?.iter().map(move |node| Given { node, kind, ..given }))
    }

    /// Returns the entries of a table whose keys are names.
    pub fn entries(&self) -> Result<impl Iterator<Item = (&'a str, Given<'a>)> + use<'a>, Problem> {
        let kind = if let Kind::Named(kind) = self.kind { *kind } else { self.kind };
        let given = *self;
        let entries = &self.node.table(self.name)?.entries;
        Ok(entries.iter().map(move |(name, node)| (name.as_str(), Given { node, kind, ..given })))
    }

    /// Returns the value with the line that states it.
    pub fn at<V>(&self, value: Result<V, Problem>) -> Result<(V, usize), Problem> {
        value.map(|value| (value, self.node.line))
    }
}

/// Stores a value.
fn set<V>(place: &mut V, value: Result<V, Problem>) -> Result<(), Problem> {
    *place = value?;
    Ok(())
}

/// Stores a value that may be absent.
fn put<V>(place: &mut Option<V>, value: Result<V, Problem>) -> Result<(), Problem> {
    *place = Some(value?);
    Ok(())
}

/// Returns a name without surrounding spaces. It must be printable.
pub(crate) fn printable(name: &str, line: usize) -> Result<String, Problem> {
    let name = name.trim();
    if name.is_empty() || name.chars().any(char::is_control) {
        return Err(Problem::at(line, format!("name = {name:?} must be a printable text")));
    }
    Ok(name.to_string())
}

/// Name of a table.
pub(crate) const NAME: Spec = Spec::new("name", Kind::Name, "unique name").required().rank(0).lost(None);
