//! Advice on the settings of a system: today's, those that the rules of `plans.rs` find, and our own runtime, each with
//! what is proved, what simulation shows, and what has to be changed for it.

use rayon::prelude::*;
use temponet_sched::proofs;
use temponet_sched::shield::Role;
use temponet_sim::ranking;
use temponet_sim::statistics::share_interval;
use temponet_sim::{Metrics, Unobserved, simulate};
use temponet_task::{CoreSet, Goal, Protocol, Scheduler, TaskId, TaskSet, Time};
use temponet_wording::counted;

use crate::advice::Claim;
use crate::progress::Progress;
use crate::roster::{Roster, SHIELDED};
use crate::stats::percent;

use super::plans::plans;
use super::policies::LinuxPolicies;
use super::proof::{Bound, proved};
use super::settings::Settings;

/// What advice is wanted on.
#[derive(Clone, Debug)]
pub struct AdvicePlan {
    /// The system as it is. Priorities and cores of its tasks are today's settings.
    pub set: TaskSet,
    /// Whether threads may leave the cores that the set binds them to.
    pub may_leave_cores: bool,
    /// What the budget of a reservation has beyond the wcet, as a share of it.
    pub margin: f64,
    /// Length of each simulated run.
    pub horizon: Time,
    /// Seed of the first run.
    pub seed: u64,
    /// Number of runs.
    pub runs: u64,
    /// Builds the schedulers of our own runtime.
    pub roster: Roster,
}

/// Who schedules.
#[derive(Clone, Debug)]
pub enum Means {
    /// Linux, with these settings.
    Linux(Settings),
    /// `temponet exec` with this scheduler.
    Runtime(String),
}

/// What is known of a line of advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every deadline is proved to be met.
    Proved,
    /// Jobs were simulated; some of the tasks may be proved.
    Simulated,
    /// Neither; the text says why.
    Unknown(String),
}

impl Verdict {
    /// The verdict in one word.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Proved => "proved",
            Verdict::Simulated => "simulated",
            Verdict::Unknown(_) => "unknown",
        }
    }
}

/// Simulated runs of a line.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// Metrics of all runs together.
    pub metrics: Metrics,
    /// Share of deadlines met, run by run.
    pub shares: Vec<f64>,
    /// Measures of the goal, run by run.
    pub scores: Vec<Vec<f64>>,
}

/// One thing that can be done.
#[derive(Clone, Debug)]
pub struct Line {
    /// What is done, in a few words.
    pub name: String,
    /// Whether these are the settings of today.
    pub is_today: bool,
    /// Who schedules.
    pub means: Means,
    /// For each task the proof that it is always in time, if there is one.
    pub bounds: Vec<Option<Bound>>,
    /// What simulation shows; none if the set could not be simulated.
    pub simulated: Option<Simulated>,
    /// Why the set could not be simulated.
    pub failure: Option<String>,
    /// Tasks whose policy or priority is not today's, and those whose cores are not; none for our own runtime.
    pub changed: Option<[Vec<TaskId>; 2]>,
    /// Tasks that are given up.
    pub given_up: Vec<TaskId>,
    /// Largest factor on all execution times, up to [`MOST_GROWTH`], with which every deadline is still proved.
    pub growth: Option<f64>,
    /// What else is to be known.
    pub notes: Vec<String>,
}

/// Largest factor on execution times that is looked for.
pub const MOST_GROWTH: f64 = 10.0;

/// Lines of advice, the best first.
#[derive(Clone, Debug)]
pub struct SettingsAdvice {
    /// The plan.
    pub plan: AdvicePlan,
    /// Goal that ranks what is not proved.
    pub goal: Goal,
    /// Today's settings.
    pub today: Settings,
    /// The lines, the best first.
    pub lines: Vec<Line>,
    /// What the settings do not represent.
    pub notes: Vec<String>,
}

/// Why no advice can be given on a set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoAdvice {
    /// A task has parts on several cores.
    #[error("task {0:?} has parts on several cores, which are not one thread of Linux")]
    Parts(String),
    /// A core is only for tasks that name it.
    #[error("core {0:?} is only for tasks that name it, so it is no processor of Linux")]
    Device(String),
}

/// Finds what can be done on a system.
pub fn advise(plan: AdvicePlan, progress: &Progress) -> Result<SettingsAdvice, NoAdvice> {
    if let Some(part) = plan.set.tasks().iter().find(|task| task.is_part) {
        return Err(NoAdvice::Parts(part.name.clone()));
    }
    if let Some(core) = plan.set.machine().cores().iter().find(|core| core.only) {
        return Err(NoAdvice::Device(core.name.clone()));
    }
    let (today, note) = Settings::stated(&plan.set);
    let free = if plan.may_leave_cores { freed(&plan.set) } else { plan.set.clone() };
    let mut lines = vec![linux(&plan.set, "today's settings".into(), today.clone(), &today)];
    progress.say("settings");
    for found in plans(&free, plan.margin) {
        let is_known = |line: &Line| matches!(&line.means, Means::Linux(settings) if *settings == found.settings);
        if !lines.iter().any(is_known) {
            let given_up = found.given_up;
            lines.push(Line { given_up, ..linux(&plan.set, found.name, found.settings, &today) });
        }
    }
    plan.roster.foresee(&free);
    lines.extend(own(&free, &plan.roster));
    for line in &mut lines {
        temponet_cancel::checkpoint();
        progress.say(&line.name);
        line.finish(&plan, &free);
    }
    simulated(&plan, &free, &mut lines, progress);
    let goal = plan.set.goal().clone();
    lines.sort_by(order);
    progress.finish();
    let mut notes: Vec<String> = note.into_iter().collect();
    let bound = plan.set.tasks().iter().filter(|task| !task.cores.is_all()).count();
    if bound > 0 && !plan.may_leave_cores && plan.set.cores() > 1 {
        notes.push(match bound {
            1 => "1 task is bound to cores in the file and stays there; leave to use any core lets it move".into(),
            _ => format!(
                "{bound} tasks are bound to cores in the file and stay there; leave to use any core lets them move"
            ),
        });
    }
    Ok(SettingsAdvice { goal, today, lines, notes, plan })
}

/// The set with every task on any core.
fn freed(set: &TaskSet) -> TaskSet {
    let mut tasks = set.tasks().to_vec();
    tasks.iter_mut().for_each(|task| task.cores = CoreSet::ALL);
    set.clone().with_tasks(tasks)
}

fn linux(set: &TaskSet, name: String, settings: Settings, today: &Settings) -> Line {
    let differs = |changes: &dyn Fn(usize) -> bool| set.task_ids().filter(|task| changes(task.index())).collect();
    let policy = |at: usize| settings.threads[at].policy != today.threads[at].policy;
    let cores = |at: usize| {
        (0..set.cores()).any(|core| {
            let may_use = |settings: &Settings| settings.threads[at].cores.contains(temponet_task::CoreId::new(core));
            may_use(&settings) != may_use(today)
        })
    };
    let changed = [differs(&policy), differs(&cores)];
    Line {
        name,
        is_today: settings == *today,
        bounds: proved(set, &settings),
        changed: Some(changed),
        means: Means::Linux(settings),
        simulated: None,
        failure: None,
        given_up: Vec::new(),
        growth: None,
        notes: Vec::new(),
    }
}

/// What our own runtime would do: the learned scheduler, and a simple one that is proved to meet every deadline.
fn own(set: &TaskSet, roster: &Roster) -> Vec<Line> {
    let deadline = |task: TaskId, by: &'static str| Some(Bound { response: set.tasks()[task].deadline, by });
    let line = |spec: &str, bounds: Vec<Option<Bound>>| Line {
        name: format!("temponet exec, {spec}"),
        is_today: false,
        means: Means::Runtime(spec.into()),
        bounds,
        simulated: None,
        failure: None,
        changed: None,
        given_up: Vec::new(),
        growth: None,
        notes: Vec::new(),
    };
    let mut lines = Vec::new();
    if roster.model.is_some() {
        let kept = shielded(set);
        let bounds = set.task_ids().map(|task| if kept[task.index()] { deadline(task, "the shield") } else { None });
        lines.push(line(SHIELDED, bounds.collect()));
    }
    let found = proofs(set);
    let preferred =
        ["edf", "p-edf", "rm", "dp-wrap"].into_iter().find(|name| found.iter().any(|proof| proof.scheduler == *name));
    if let Some(name) = preferred.or_else(|| found.first().map(|proof| proof.scheduler)) {
        lines.push(line(name, set.task_ids().map(|task| deadline(task, "its schedulability test")).collect()));
    }
    if set.has_sections() {
        let note = match set.cores() == 1 && set.system.protocol() == Protocol::Inheritance {
            true => "temponet exec leaves waits for resources to the kernel, and its schedulers are not told of them",
            false => "temponet exec runs critical sections on one core under the protocol inheritance only",
        };
        lines.iter_mut().for_each(|line| line.notes.push(note.into()));
    }
    lines
}

impl Line {
    /// Whether every task is proved to be in time.
    pub fn is_proved(&self) -> bool {
        self.bounds.iter().all(Option::is_some)
    }

    /// Number of tasks that are proved to be in time.
    pub fn proved_tasks(&self) -> usize {
        self.bounds.iter().flatten().count()
    }

    /// Settings of Linux; none for our own runtime.
    pub fn settings(&self) -> Option<&Settings> {
        match &self.means {
            Means::Linux(settings) => Some(settings),
            Means::Runtime(_) => None,
        }
    }

    /// Adds how far the proof reaches and what has to be known of the settings.
    fn finish(&mut self, plan: &AdvicePlan, free: &TaskSet) {
        if self.is_proved() && free.tasks().len() <= MOST_SCALED {
            let set = if self.settings().is_some() { &plan.set } else { free };
            self.growth = Some(growth(set, &self.means));
        }
        let Some(settings) = self.settings() else { return };
        let mut notes = Vec::new();
        if settings.may_be_throttled(&plan.set) {
            notes.push("real-time threads may ask for more than 95% of a processor in a second, and the kernel may throttle them: sysctl kernel.sched_rt_runtime_us=-1 turns that off".to_string());
        }
        if settings.has_partitions {
            notes.push(
                "SCHED_DEADLINE threads keep to a processor only within a cpuset that is a partition root".into(),
            );
        }
        let has_fair = settings.threads.iter().any(|thread| matches!(thread.policy, super::Policy::Other { .. }));
        if has_fair {
            notes.push("the fair class is simulated approximately, and nothing is proved of it".into());
        }
        self.notes.extend(notes);
    }

    /// What is known.
    pub fn verdict(&self) -> Verdict {
        match (self.is_proved(), &self.simulated) {
            (true, _) => Verdict::Proved,
            (false, Some(_)) => Verdict::Simulated,
            (false, None) => Verdict::Unknown(self.failure.clone().unwrap_or_default()),
        }
    }

    /// The share of deadlines that simulated runs met; none if there are no such runs.
    pub fn share(&self) -> Option<f64> {
        self.simulated.as_ref().map(|runs| runs.metrics.jobs.compliance())
    }

    /// Distance from the share to the farther end of its 95% interval; none for a single run.
    pub fn margin(&self) -> Option<f64> {
        let runs = self.simulated.as_ref()?;
        let interval = share_interval(&runs.shares, Some(runs.metrics.jobs.released as f64))?;
        let mean = crate::stats::mean(&runs.shares);
        Some((mean - interval.low).max(interval.high - mean))
    }

    /// Number of settings that have to be changed; a new program is more than any.
    fn cost(&self) -> usize {
        self.changed.as_ref().map_or(usize::MAX, |[policies, cores]| policies.len() + cores.len())
    }

    /// What has to be changed, in words.
    pub fn changes(&self) -> String {
        match &self.changed {
            None => "the program".into(),
            Some([policies, cores]) if policies.is_empty() && cores.is_empty() => "nothing".into(),
            Some([policies, cores]) => {
                let count = |tasks: &[TaskId], one: &str, many: &str| match tasks.len() {
                    0 => None,
                    1 => Some(format!("1 {one}")),
                    count => Some(format!("{count} {many}")),
                };
                let parts = [count(policies, "policy", "policies"), count(cores, "affinity", "affinities")];
                parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// Largest number of tasks for which it is asked how much longer jobs may take.
const MOST_SCALED: usize = 300;

/// Largest factor on all execution times, in hundredths, with which every deadline is still proved; it is at 1.
fn growth(set: &TaskSet, means: &Means) -> f64 {
    const WHOLE: u64 = 100;
    let (mut low, mut high) = (WHOLE, (MOST_GROWTH * WHOLE as f64) as u64 + 1);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if is_proved_with(&set.with_work(middle, WHOLE), means) { low = middle } else { high = middle }
    }
    low as f64 / WHOLE as f64
}

fn is_proved_with(set: &TaskSet, means: &Means) -> bool {
    match means {
        Means::Linux(settings) => proved(set, settings).iter().all(Option::is_some),
        Means::Runtime(spec) if spec == SHIELDED => shielded(set).iter().all(|is_kept| *is_kept),
        Means::Runtime(spec) => proofs(set).iter().any(|proof| proof.scheduler == spec),
    }
}

/// Whether the shield guarantees each task.
fn shielded(set: &TaskSet) -> Vec<bool> {
    let role = Role::on(&set.system);
    let is_kept = |task: TaskId| match &role {
        Role::StandIn(_) => true,
        role => role.guarantee().is_some_and(|guarantee| guarantee.core_of(task).is_some()),
    };
    set.task_ids().map(is_kept).collect()
}

/// Simulates every line on the same jobs.
fn simulated(plan: &AdvicePlan, free: &TaskSet, lines: &mut [Line], progress: &Progress) {
    let runs = if plan.set.is_random() { plan.runs } else { 1 };
    let cells: Vec<(usize, u64)> = (0..lines.len()).flat_map(|line| (0..runs).map(move |run| (line, run))).collect();
    let one = |(line, run): &(usize, u64)| -> Result<Metrics, String> {
        temponet_cancel::checkpoint();
        let line = &lines[*line];
        progress.say(&line.name);
        let (set, mut scheduler): (TaskSet, Box<dyn Scheduler>) = match &line.means {
            Means::Linux(settings) => (settings.applied(&plan.set), Box::new(LinuxPolicies::new(settings.clone()))),
            Means::Runtime(spec) => (free.clone(), plan.roster.build(spec).map_err(|error| error.to_string())?),
        };
        let mut watched = progress.watch(Unobserved);
        let seed = plan.seed.wrapping_add(*run);
        let metrics =
            simulate(&set, seed, plan.horizon, &mut *scheduler, &mut watched).map_err(|error| error.to_string());
        watched.done(plan.horizon);
        metrics
    };
    let outcomes: Vec<Result<Metrics, String>> = cells.par_iter().map(one).collect();
    let goal = plan.set.goal();
    for ((line, _), outcome) in cells.into_iter().zip(outcomes) {
        let line = &mut lines[line];
        match (outcome, &mut line.simulated) {
            (Err(why), _) => line.failure = Some(why),
            (Ok(run), Some(all)) => {
                all.metrics.merge(&run);
                all.shares.push(run.jobs.compliance());
                all.scores.push(run.scores(goal));
            }
            (Ok(run), none) => {
                let (shares, scores) = (vec![run.jobs.compliance()], vec![run.scores(goal)]);
                *none = Some(Simulated { metrics: run, shares, scores });
            }
        }
    }
    // Runs that failed cover fewer jobs than the others.
    let is_whole = |line: &Line| line.simulated.as_ref().is_some_and(|found| found.shares.len() as u64 == runs);
    lines.iter_mut().filter(|line| !is_whole(line)).for_each(|line| line.simulated = None);
}

/// The best line first: proved ones, those with most room before others; then by the goal, by the number of tasks that
/// are proved, and by how little has to be changed.
fn order(a: &Line, b: &Line) -> std::cmp::Ordering {
    let class = |line: &Line| match line.verdict() {
        Verdict::Proved => 0,
        Verdict::Simulated => 1,
        Verdict::Unknown(_) => 2,
    };
    let means = |line: &Line| line.simulated.as_ref().map_or(Vec::new(), |runs| ranking::means(&runs.scores));
    let room = |line: &Line| line.growth.unwrap_or(0.0);
    let by_merit = class(a).cmp(&class(b)).then_with(|| match class(a) {
        0 => room(b).total_cmp(&room(a)),
        _ => ranking::order(&means(a), &means(b)).then(b.proved_tasks().cmp(&a.proved_tasks())),
    });
    by_merit.then(a.cost().cmp(&b.cost()))
}

impl SettingsAdvice {
    /// The line of today's settings.
    pub fn today(&self) -> Option<&Line> {
        self.lines.iter().find(|line| line.is_today)
    }

    /// The best line that Linux carries out by itself.
    pub fn best(&self) -> Option<&Line> {
        self.lines.iter().find(|line| line.settings().is_some())
    }

    /// How a line differs from today's settings in simulation; none if all runs are equal.
    pub fn against_today(&self, line: &Line) -> Option<Claim> {
        self.claim(line, self.today()?)
    }

    /// What to do, in a few sentences.
    pub fn verdict(&self) -> String {
        let (Some(best), Some(today)) = (self.best(), self.today()) else { return String::new() };
        let tasks = self.plan.set.tasks().len();
        let share = |line: &Line| line.share().map_or("an unknown share".into(), percent);
        let in_simulation = |line: &Line| format!("{} of the deadlines in simulation", share(line));
        let name = self.named(best);
        let mut sentences = match (best.verdict(), today.verdict()) {
            (Verdict::Proved, Verdict::Proved) if best.is_today => {
                vec!["Today's settings are proved to meet every deadline, and no others leave more room.".to_string()]
            }
            (Verdict::Proved, Verdict::Proved) => vec![format!(
                "Today's settings are proved to meet every deadline. {name} leaves more room: jobs may take {:.2} times their wcets instead of {:.2}.",
                best.growth.unwrap_or(1.0),
                today.growth.unwrap_or(1.0)
            )],
            (Verdict::Proved, _) => vec![format!(
                "{name} is proved to meet every deadline. Today's settings are not; they met {}.",
                in_simulation(today)
            )],
            _ if best.is_today || !self.claim(best, today).is_some_and(|claim| claim.is_lead()) => {
                vec![format!(
                    "Nothing that Linux can do is better than today's settings beyond chance: they met {}.",
                    in_simulation(today)
                )]
            }
            _ => {
                let more = self.claim(best, today).map_or(String::new(), |claim| {
                    format!(", {} more than today's settings", claim.points(&self.goal))
                });
                vec![format!("{name} met {}{more}.", in_simulation(best))]
            }
        };
        if best.verdict() == Verdict::Simulated && best.proved_tasks() > 0 {
            let are = if best.proved_tasks() == 1 { "is" } else { "are" };
            sentences.push(format!(
                "{} of its {} {are} proved to be always in time.",
                best.proved_tasks(),
                counted(tasks, "task")
            ));
        }
        let runtime = self.lines.iter().filter(|line| line.settings().is_none());
        let ahead = runtime.filter_map(|line| Some((line, self.claim(line, best)?))).find(|(_, claim)| claim.is_lead());
        if let Some((line, claim)) = ahead {
            sentences.push(format!("{} would add {}.", self.named(line), claim.points(&self.goal)));
        }
        sentences.join(" ")
    }

    /// The number and the name of a line.
    fn named(&self, line: &Line) -> String {
        let number = self.lines.iter().position(|other| std::ptr::eq(other, line)).map_or(0, |at| at + 1);
        format!("Line {number} ({})", line.name)
    }

    fn claim(&self, line: &Line, other: &Line) -> Option<Claim> {
        let (own, other) = (line.simulated.as_ref()?, other.simulated.as_ref()?);
        Claim::from_edges(ranking::edges(&self.goal, &own.scores, &other.scores, &own.metrics.units(&self.goal)))
    }
}

/// The processors of a thread in words.
pub fn processors(set: &TaskSet, thread: &super::Setting) -> String {
    let own: Vec<String> = thread.cores.iter(set.cores()).map(|core| core.to_string()).collect();
    if own.len() == set.cores() { "all".into() } else { own.join(", ") }
}
