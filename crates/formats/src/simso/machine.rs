//! The machine of a simulation: processors with their overheads and speeds, caches, and the scheduler.

use roxmltree::Node as Element;

use temponet_task::{Core, Costs, Speed, TaskSet, Time};

use super::{Clock, Locator};
use crate::Problem;
use crate::keys::MOST_CORES;
use crate::node::Fields;
use crate::notes::Notes;

/// Speed of a processor in millionths, which keeps scaled times whole.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ProcessorSpeed(u64);

impl ProcessorSpeed {
    /// Speed 1, the default.
    pub const ONE: ProcessorSpeed = ProcessorSpeed(1_000_000);

    /// Returns the speed in thousandths.
    fn rounded(self) -> Speed {
        Speed(((self.0 + 500) / 1000).max(1) as u32)
    }

    /// Returns the time at this speed for work that takes `time` at speed 1, rounded up.
    pub fn scale(self, time: Time) -> Time {
        let scaled = (u128::from(time.0) * u128::from(ProcessorSpeed::ONE.0)).div_ceil(u128::from(self.0));
        Time(u64::try_from(scaled).unwrap_or(u64::MAX)).min(Time::MAX_INPUT)
    }
}

/// Sets the cores and costs of `set`. Returns the common speed of all processors. If they have different ones, the
/// cores have them, and times remain those at speed 1.
pub(super) fn processors(
    locator: Locator<'_>,
    section: Element<'_, '_>,
    clock: Clock,
    set: &mut TaskSet,
    notes: &mut Notes,
) -> Result<ProcessorSpeed, Problem> {
    let node = locator.attributes(section);
    let mut fields = Fields::of(&node, "processors")?;
    if let Some(node) = fields.take("migration_overhead") {
        set.system.set_costs(Costs { migration: clock.time(node, "migration_overhead")?, ..*set.costs() });
    }
    ignore(fields, notes)?;
    let (mut cores, mut speeds, mut overheads) = (0, Vec::new(), Vec::new());
    let mut names = Vec::new();
    for element in section.children().filter(Element::is_element) {
        let line = locator.line(element);
        match element.tag_name().name() {
            "processor" => {}
            "field" => {
                notes.add(line, "a \"field\" of the processors is ignored");
                continue;
            }
            other => {
                notes.add(line, format!("<{other}> in <processors> is ignored"));
                continue;
            }
        }
        cores += 1;
        let node = locator.attributes(element);
        let mut fields = Fields::of(&node, "processor")?;
        let name = fields.take("name").map_or(Ok("processor"), |node| node.text("name"))?;
        let is_usable = !name.is_empty() && !name.contains(char::is_control) && name.parse::<i64>().is_err();
        names.push(if is_usable { name.to_string() } else { "processor".into() });
        fields.take("id");
        let speed = fields.take("speed").map_or(Ok(1.0), |node| node.number("speed", 0.001, 1000.0))?;
        speeds.push(ProcessorSpeed((speed * ProcessorSpeed::ONE.0 as f64).round() as u64));
        let mut overhead = Time::ZERO;
        for key in ["cl_overhead", "cs_overhead"] {
            if let Some(node) = fields.take(key) {
                overhead += clock.time(node, key)?;
            }
        }
        overheads.push(overhead);
        ignore(fields, notes)?;
    }
    let line = locator.line(section);
    if cores == 0 || cores > MOST_CORES as usize {
        return Err(Problem::at(line, format!("{cores} processors: 1 to {MOST_CORES} are possible")));
    }
    set.system.set_cores(cores);
    let most = overheads.iter().copied().max().unwrap_or_default();
    set.system.set_costs(Costs { context_switch: most.min(Time::MAX_INPUT), ..*set.costs() });
    if most > Time::ZERO {
        let message = format!(
            "cl_overhead and cs_overhead become a context switch of {most}, paid when a job is put on a core; SimSo also \
             charges them when a job is interrupted and goes on"
        );
        notes.add(line, message);
        if overheads.iter().any(|overhead| *overhead != most) {
            notes.add(line, format!("the overheads differ between processors: the largest, {most}, is taken"));
        }
    }
    match speeds.first() {
        Some(first) if speeds.iter().all(|speed| speed == first) => Ok(*first),
        _ => {
            let core = |(name, speed): (String, &ProcessorSpeed)| Core::new(name, speed.rounded());
            set.system.set_machine(names.into_iter().zip(&speeds).map(core).collect());
            if speeds.iter().any(|speed| u64::from(speed.rounded().0) * 1000 != speed.0) {
                notes.add(line, "the processors' speeds are rounded to thousandths");
            }
            Ok(ProcessorSpeed::ONE)
        }
    }
}

/// Notes that caches are not represented.
pub(super) fn caches(locator: Locator<'_>, section: Element<'_, '_>, notes: &mut Notes) {
    if section.children().any(|child| child.is_element()) {
        notes.add(locator.line(section), "<caches> are not represented");
    }
}

/// Schedulers of SimSo and the TempoNet schedulers that correspond to them.
const SCHEDULERS: [(&str, &str); 24] = [
    ("CC_EDF", "cc-edf"),
    ("DP_WRAP", "dp-wrap"),
    ("EDCL", "edcl"),
    ("EDF", "edf"),
    ("EDF2", "edf"),
    ("EDF_US", "edf-us"),
    ("EDF_mono", "edf"),
    ("EDZL", "edzl"),
    ("ER_PD2", "er-pd2"),
    ("FP", "fp"),
    ("G_FL", "g-fl"),
    ("LLF", "llf"),
    ("LLREF", "llref"),
    ("LLREF2", "llref"),
    ("LRE_TL", "lre-tl"),
    ("MLLF", "mllf"),
    ("PD2", "pd2"),
    ("P_EDF", "p-edf"),
    ("P_EDF2", "p-edf"),
    ("P_EDF_WF", "p-edf"),
    ("P_RM", "p-rm"),
    ("RM", "rm"),
    ("RM_mono", "rm"),
    ("Static_EDF", "static-edf"),
];

/// Notes which TempoNet scheduler corresponds to the scheduler of the file. A task set has no scheduler.
pub(super) fn scheduler(
    locator: Locator<'_>,
    section: Element<'_, '_>,
    clock: Clock,
    notes: &mut Notes,
) -> Result<(), Problem> {
    let node = locator.attributes(section);
    let mut fields = Fields::of(&node, "sched")?;
    for key in ["class", "className"] {
        let Some(node) = fields.take(key) else { continue };
        let class = node.text(key)?;
        let short = class.rsplit(['.', '/']).next().unwrap_or_default();
        match SCHEDULERS.iter().find(|(theirs, _)| key == "class" && *theirs == short) {
            Some((_, ours)) => notes.add(node.line, format!("the scheduler {} is {ours} here", node.shown())),
            None if class.is_empty() => {}
            None => notes.add(node.line, format!("the scheduler {} has no counterpart by its name here", node.shown())),
        }
    }
    for key in ["overhead", "overhead_activate", "overhead_terminate"] {
        let Some(node) = fields.take(key) else { continue };
        let time = clock.time(node, key)?;
        if time > Time::ZERO {
            notes.add(node.line, format!("{key:?} = {time} is not represented: a cost of decisions comes close"));
        }
    }
    for child in section.children().filter(Element::is_element) {
        let name = child.attribute("name").unwrap_or_default();
        notes.add(locator.line(child), format!("the scheduler's field {name:?} is ignored"));
    }
    ignore(fields, notes)
}

/// Notes the attributes that are not read.
fn ignore(fields: Fields<'_>, notes: &mut Notes) -> Result<(), Problem> {
    for (key, node) in fields.rest()? {
        notes.add(node.line, format!("attribute {key:?} = {} is ignored", node.shown()));
    }
    Ok(())
}
