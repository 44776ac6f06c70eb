//! Simulations of SimSo (<https://projects.laas.fr/simso/>): XML with the root `<simulation>`. Times of tasks are in
//! milliseconds; overheads and the duration are in cycles.

mod machine;
mod task;

use roxmltree::{Document, Node as Element};

use temponet_task::{OnMiss, TaskSet, Time};

use crate::node::{Fields, Node, Table, Value};
use crate::notes::{Imported, Notes};
use crate::read::{Names, hopeless};
use crate::{Lines, Problem, one_line};

/// Reads the task set of a simulation.
pub(super) fn read(text: &str, name: &str) -> Result<Imported, Problem> {
    let lines = Lines::of(text);
    let document = Document::parse(text).map_err(|error| {
        let message = error.to_string();
        let message = message.split(" at ").next().unwrap_or_default();
        Problem::at(error.pos().row as usize, format!("is not XML: {}", one_line(message)))
    })?;
    let root = document.root_element();
    let locator = Locator { lines: &lines };
    if !root.has_tag_name("simulation") {
        let tag = root.tag_name().name();
        return Err(Problem::at(
            locator.line(root),
            format!("is no file of SimSo: its root is <{tag}>, not <simulation>"),
        ));
    }
    let mut notes = Notes::default();
    let attributes = simulation(locator, root, &mut notes)?;
    let mut set = TaskSet::new(name, Vec::new(), 1);
    let clock = attributes.clock;
    let (mut found_processors, mut tasks) = (false, None);
    let mut speed = machine::ProcessorSpeed::ONE;
    for section in root.children().filter(Element::is_element) {
        match section.tag_name().name() {
            "processors" if !found_processors => {
                found_processors = true;
                speed = machine::processors(locator, section, clock, &mut set, &mut notes)?;
            }
            "tasks" if tasks.is_none() => tasks = Some(section),
            "sched" => machine::scheduler(locator, section, clock, &mut notes)?,
            "caches" => machine::caches(locator, section, &mut notes),
            other => notes.add(locator.line(section), format!("<{other}> is ignored")),
        }
    }
    if !found_processors {
        return Err(Problem::at(locator.line(root), "has no <processors>"));
    }
    let tasks = tasks.ok_or_else(|| Problem::at(locator.line(root), "has no <tasks>"))?;
    let (mut names, mut warnings, mut rules) = (Names::default(), Vec::new(), Vec::new());
    let mut read = Vec::new();
    for (task, on_miss, line) in task::all(locator, tasks, &attributes, speed, &mut notes)? {
        names.add(task.name.clone(), line)?;
        warnings.extend(hopeless(line, &task, set.fastest(&task)));
        rules.push((on_miss, line));
        read.push(task);
    }
    set.system.set_tasks(read);
    if set.tasks().is_empty() {
        return Err(Problem::at(locator.line(tasks), "has no task that can be simulated here"));
    }
    set.system.set_on_miss(rules[0].0);
    if let Some((_, line)) = rules.iter().find(|(rule, _)| *rule != set.on_miss()) {
        set.system.set_on_miss(OnMiss::Abort);
        notes.add(
            *line,
            "\"abort_on_miss\" differs between tasks, but a set has one rule: on_miss = \"abort\" is taken",
        );
    }
    Ok(Imported { set, warnings, notes, files: Vec::new() })
}

/// Finds the lines of XML elements and attributes.
#[derive(Clone, Copy)]
struct Locator<'a> {
    lines: &'a Lines,
}

impl Locator<'_> {
    /// Returns the line of an element.
    fn line(self, element: Element<'_, '_>) -> usize {
        self.lines.at(element.range().start)
    }

    /// Returns the attributes of an element as a table.
    fn attributes(self, element: Element<'_, '_>) -> Node {
        let entries = element.attributes().map(|attribute| {
            let line = self.lines.at(attribute.range().start);
            (attribute.name().to_string(), Node { line, value: Value::Cell(attribute.value().trim().to_string()) })
        });
        Node { line: self.line(element), value: Value::Table(Table { entries: entries.collect() }) }
    }
}

/// Conversion of cycles to time.
#[derive(Clone, Copy)]
struct Clock {
    cycles_per_ms: u64,
}

impl Clock {
    /// Reads a number of cycles, such as `1000` or `1000.0`, as a time. Fractions of a cycle are cut off, as in SimSo.
    fn time(self, node: &Node, key: &str) -> Result<Time, Problem> {
        let cycles = node.number(key, 0.0, 1e18)? as u128;
        let ns = (cycles * 1_000_000).div_ceil(u128::from(self.cycles_per_ms));
        match u64::try_from(ns).map(Time) {
            Ok(time) if time <= Time::MAX_INPUT => Ok(time),
            _ => Err(Problem::at(node.line, format!("{key} = {} cycles is longer than 30 years", node.shown()))),
        }
    }
}

/// Execution-time model of SimSo (`etm`), as far as it is represented.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExecutionTimeModel {
    /// Every job takes its WCET.
    Wcet,
    /// Jobs take random times around their ACET.
    Acet,
}

/// Attributes of the root element.
struct SimulationAttributes {
    clock: Clock,
    execution_times: ExecutionTimeModel,
}

/// Reads the attributes of the root element.
fn simulation(locator: Locator<'_>, root: Element<'_, '_>, notes: &mut Notes) -> Result<SimulationAttributes, Problem> {
    let node = locator.attributes(root);
    let mut fields = Fields::of(&node, "simulation")?;
    let cycles_per_ms = match fields.take("cycles_per_ms") {
        Some(node) => node.integer("cycles_per_ms", 1, 1_000_000_000_000)? as u64,
        None => 1_000_000,
    };
    let clock = Clock { cycles_per_ms };
    if let Some(node) = fields.take("duration") {
        let time = clock.time(node, "duration")?;
        notes.add(node.line, format!("\"duration\" is not part of a task set: a horizon of {time} runs as long"));
    }
    let (etm, use_wcet) = (fields.take("etm"), fields.take("use_wcet"));
    let (name, line) = match (etm, use_wcet) {
        (Some(node), _) => (node.text("etm")?, node.line),
        (None, Some(node)) if !["true", "yes"].contains(&node.text("use_wcet")?) => ("cache", node.line),
        _ => ("wcet", node.line),
    };
    let execution_times = if name == "acet" { ExecutionTimeModel::Acet } else { ExecutionTimeModel::Wcet };
    match name {
        "wcet" | "acet" => {}
        "cache" => {
            let parts = "caches, instructions, mix, base_cpi and stack";
            notes.add(line, format!("etm = \"cache\" is not represented: jobs take their WCET, without {parts}"));
        }
        "fixedpenalty" => {
            let message = "the penalties of etm = \"fixedpenalty\" are not represented: costs of switches and \
                           migrations come close";
            notes.add(line, message);
        }
        other => notes.add(line, format!("the execution-time model etm = {other:?} is unknown: jobs take their WCET")),
    }
    for key in ["penalty_preemption", "penalty_migration"] {
        if let Some(node) = fields.take(key).filter(|_| name == "fixedpenalty") {
            notes.add(node.line, format!("{key:?} = {} is not represented", clock.time(node, key)?));
        }
    }
    for (key, node) in fields.rest()? {
        notes.add(node.line, format!("unknown attribute {key:?} is ignored"));
    }
    Ok(SimulationAttributes { clock, execution_times })
}
