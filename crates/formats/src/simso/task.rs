//! `<task>` elements to tasks.

use roxmltree::Node as Element;

use temponet_task::{Arrival, ExecutionModel, ListedJob, OnMiss, Task, Time, TimeUnit};

use super::machine::ProcessorSpeed;
use super::{ExecutionTimeModel, Locator, SimulationAttributes};
use crate::Problem;
use crate::jobs::listed_task;
use crate::keys::{Context, DEADLINE, OFFSET, OWN_NAME, PERIOD, PRIORITY, TaskDraft};
use crate::node::{Fields, Node};
use crate::notes::Notes;

/// Reads the tasks that can be represented, each with its miss rule and its line. The others become notes.
pub(super) fn all(
    locator: Locator<'_>,
    section: Element<'_, '_>,
    attributes: &SimulationAttributes,
    speed: ProcessorSpeed,
    notes: &mut Notes,
) -> Result<Vec<(Task, OnMiss, usize)>, Problem> {
    let mut tasks = Vec::new();
    for element in section.children().filter(Element::is_element) {
        match element.tag_name().name() {
            "task" => {
                let node = locator.attributes(element);
                let mut reader = Reader { attributes, speed, notes };
                if let Some((task, on_miss)) = reader.task(&node)? {
                    tasks.push((task, on_miss, node.line));
                }
            }
            // A `<field>` declares an attribute of the tasks, which is noted where it occurs.
            "field" => {}
            other => notes.add(locator.line(element), format!("<{other}> in <tasks> is ignored")),
        }
    }
    Ok(tasks)
}

/// Reader of `<task>` elements.
struct Reader<'a> {
    attributes: &'a SimulationAttributes,
    speed: ProcessorSpeed,
    notes: &'a mut Notes,
}

impl Reader<'_> {
    /// Reads a task and its miss rule; `None` if the task is left out.
    fn task(&mut self, node: &Node) -> Result<Option<(Task, OnMiss)>, Problem> {
        let (mut fields, mut draft, ms) = (Fields::of(node, "task")?, TaskDraft::new(), Context::plain(TimeUnit::Ms));
        OWN_NAME.set(&mut draft, "name", fields.need("name")?, &ms)?;
        let on_miss = match fields.take("abort_on_miss").map(|node| node.text("abort_on_miss")).transpose()? {
            None | Some("yes") => OnMiss::Abort,
            Some(_) => OnMiss::Continue,
        };
        // The `id` is replaced by the name. The others serve only SimSo's cache model, which has a note at the root.
        for key in ["id", "instructions", "mix", "base_cpi", "stack"] {
            fields.take(key);
        }
        DEADLINE.set(&mut draft, "deadline", fields.need("deadline")?, &ms)?;
        let wcet = self.speed.scale(fields.need("WCET")?.time("WCET", TimeUnit::Ms)?);
        if wcet == Time::ZERO {
            self.notes.task(node.line, &draft.task.name, "is left out: its WCET is 0");
            return Ok(None);
        }
        (draft.task.wcet, draft.task.bcet) = (wcet, wcet);
        if let Some(node) = fields.take("priority") {
            PRIORITY.set(&mut draft, "priority", node, &ms)?;
        }
        let Some(mut task) = self.arrivals(&mut fields, draft, &ms)? else { return Ok(None) };
        self.execution_times(&mut fields, &mut task)?;
        if let Some(node) = fields.take("followed_by") {
            let message = format!("\"followed_by\" = {} is not represented: tasks are independent", node.shown());
            self.notes.task(node.line, &task.name, message);
        }
        if let Some(node) = fields.take("preemption_cost").filter(|node| !is_zero(node)) {
            let message = format!("\"preemption_cost\" = {} is not represented", node.shown());
            self.notes.task(node.line, &task.name, message);
        }
        for (key, node) in fields.rest()? {
            self.notes.task(node.line, &task.name, format_args!("attribute {key:?} = {} is ignored", node.shown()));
        }
        Ok(Some((task, on_miss)))
    }

    /// Returns the task with its arrivals; `None` if it has no arrivals of its own.
    fn arrivals<'a>(
        &mut self,
        fields: &mut Fields<'a>,
        mut draft: TaskDraft<'a>,
        ms: &'a Context<'a>,
    ) -> Result<Option<Task>, Problem> {
        let (line, deadline) = (fields.line(), draft.deadline.unwrap_or_default());
        let (kind, periodic) = (fields.take("task_type"), fields.take("periodic"));
        if let Some(node) = fields.take("activationDate") {
            OFFSET.set(&mut draft, "activationDate", node, ms)?;
        }
        let (dates, period) = (fields.take("list_activation_dates"), fields.take("period"));
        let kind = match (kind, periodic) {
            (Some(node), _) => (node.text("task_type")?, node.line),
            (None, Some(node)) if node.text("periodic")? == "no" => ("APeriodic", node.line),
            _ => ("Periodic", line),
        };
        match kind {
            ("Periodic", _) => {
                let missing = || Problem::at(line, format!("task {:?} has no period", draft.task.name));
                let node = period.ok_or_else(missing)?;
                PERIOD.set(&mut draft, "period", node, ms)?;
                let period = draft.period.map_or(Time::ZERO, |(period, _)| period);
                Ok(Some(draft.task.with_deadline(deadline).with_arrival(Arrival::Periodic { period })))
            }
            ("Sporadic", _) => {
                let dates = dates.map_or(Ok(Vec::new()), activation_dates)?;
                if dates.is_empty() {
                    self.notes.task(line, &draft.task.name, "is left out: it has no activation dates");
                    return Ok(None);
                }
                let Task { name, wcet, extra, .. } = draft.task;
                let jobs = dates.into_iter().map(|release| ListedJob::new(release, release + deadline, wcet));
                Ok(Some(listed_task(name, jobs.collect()).with_extra(extra)))
            }
            ("APeriodic", _) => {
                self.notes.task(line, &draft.task.name, "is left out: another task activates it (followed_by)");
                Ok(None)
            }
            (other, line) => {
                Err(Problem::at(line, format!("task_type = {other:?} is none of Periodic, Sporadic, APeriodic")))
            }
        }
    }

    /// Reads `ACET` and `et_stddev`, which have an effect with etm = "acet" only.
    fn execution_times(&mut self, fields: &mut Fields<'_>, task: &mut Task) -> Result<(), Problem> {
        let line = fields.line();
        let (acet_node, deviation_node) = (fields.take("ACET"), fields.take("et_stddev"));
        let time = |node: Option<&Node>, key| node.map_or(Ok(Time::ZERO), |node| node.time(key, TimeUnit::Ms));
        let acet = self.speed.scale(time(acet_node, "ACET")?);
        let deviation = self.speed.scale(time(deviation_node, "et_stddev")?);
        if self.attributes.execution_times == ExecutionTimeModel::Wcet {
            if acet > Time::ZERO || deviation > Time::ZERO {
                self.notes.whole_file("\"ACET\" and \"et_stddev\" are ignored, as SimSo does unless etm = \"acet\"");
            }
            return Ok(());
        }
        if task.period().is_none() || acet == Time::ZERO {
            let why = if acet == Time::ZERO { "its ACET is 0" } else { "single jobs have no random execution times" };
            self.notes.task(line, &task.name, format_args!("{why}: each job takes its WCET"));
            return Ok(());
        }
        if acet >= task.wcet && deviation == Time::ZERO {
            return Ok(());
        }
        if acet > task.wcet {
            let message = format!("its ACET {acet} is more than its WCET {}: that is taken for the mean", task.wcet);
            self.notes.task(line, &task.name, message);
        }
        let mean = acet.min(task.wcet);
        task.acet = Some(mean);
        (task.bcet, task.execution) = match deviation {
            Time::ZERO => (mean, ExecutionModel::Empirical { samples: [mean].into() }),
            // SimSo has no best-case execution time.
            deviation => (Time(1), ExecutionModel::Normal { deviation }),
        };
        Ok(())
    }
}

/// Reads activation dates in milliseconds, separated by commas.
fn activation_dates(node: &Node) -> Result<Vec<Time>, Problem> {
    let dates = node.text("list_activation_dates")?.split(',').map(str::trim).filter(|date| !date.is_empty());
    let time = |date: &str| {
        let message = |error| format!("list_activation_dates: {date:?} {error}");
        Time::parse(date, TimeUnit::Ms).map_err(|error| Problem::at(node.line, message(error)))
    };
    dates.map(time).collect()
}

/// Returns whether a value is the number 0.
fn is_zero(node: &Node) -> bool {
    node.number("", 0.0, 0.0).is_ok()
}
