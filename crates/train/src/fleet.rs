//! Many environments at once, each with a seed of its own.
//!
//! They stop only at *choices*: decision points with more ready jobs than cores. At all other decision points every
//! ready job runs, and there is nothing to learn. If speeds are chosen too, every decision point with a ready job is a
//! choice.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use temponet::planner::{Plan, Planner, PlannerSettings};
use temponet::stages::{FirmHistory, Observation, Scale, Tokenizer, core_speed};
use temponet_sched::SpecError;
use temponet_sim::generate::GenerateError;
use temponet_sim::{SimError, is_for_evaluation, mixed_seed};
use temponet_task::{
    Arrival, Assignment, JobId, ListedJob, NotApplicable, Scheduler, System, SystemView, Task, TaskSet, Time,
};

use crate::base_scheduler::best_base_scheduler;
use crate::environment::{Ending, Environment, EnvironmentSettings};
use crate::parallel::par_map;
use crate::recipe::EpisodeSettings;
use crate::reward::Reward;
use crate::sample::{Past, Sample, SampleView, Samples};
use crate::task_set_source::TaskSetSource;
use crate::teacher::teacher;

/// Reason why an environment cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// A task set could not be drawn.
    #[error("drawing a task set: {0}")]
    Generate(#[from] GenerateError),
    /// A decision was illegal.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// Many episodes in a row had no choice in them.
    #[error(
        "in {MAX_EMPTY} episodes there were never more ready jobs than cores: there is nothing to choose, and nothing to learn"
    )]
    NothingToChoose,
    /// No scheduler has the teacher's name.
    #[error("teacher: {0}")]
    Teacher(#[from] SpecError),
    /// The network cannot read this set.
    #[error("network: {0}")]
    NotReadable(String),
    /// The teacher cannot schedule this set.
    #[error("teacher: {0}")]
    NotApplicable(#[from] NotApplicable),
}

/// Settings of episodes.
#[derive(Clone, Debug)]
pub struct Episodes {
    /// Source of the task sets.
    pub source: TaskSetSource,
    /// Tokenizer, the same as in the deployed scheduler.
    pub tokenizer: Arc<Tokenizer>,
    /// Reward.
    pub reward: Reward,
    /// Length of an episode, in units of the set's scale (its median wcet).
    pub length: f64,
    /// Period of additional decision points, the paper's tick, in the same unit; `None` leaves only the simulator's
    /// events.
    pub tick: Option<f64>,
    /// Discount per unit of time, 0 to 1, unless there is a horizon.
    pub gamma: f64,
    /// Time in which the weight of a reward falls to 1/e, in mean relative deadlines of the set.
    pub horizon: Option<f64>,
    /// Least length of an episode in mean relative deadlines of the set.
    pub deadlines: f64,
    /// Name of the teacher, a scheduler or [`crate::OPTIMUM`], that is asked at every decision point what it would do;
    /// `None` asks nobody.
    pub teacher: Option<String>,
    /// Settings of a planner over the base scheduler of each set; `None` plans nothing.
    pub planner: Option<PlannerSettings>,
    /// Number of speeds below full speed that are chosen from, as in [`temponet_infer::BodyKeys::speeds`].
    pub speeds: usize,
}

impl Episodes {
    /// Creates episodes without teacher, planner and speeds.
    pub fn new(source: TaskSetSource, tokenizer: Tokenizer, settings: EpisodeSettings) -> Episodes {
        let EpisodeSettings { length, tick, gamma, horizon, deadlines, reward } = settings;
        let (tokenizer, teacher, planner) = (Arc::new(tokenizer), None, None);
        Episodes { source, tokenizer, reward, length, tick, gamma, horizon, deadlines, teacher, planner, speeds: 0 }
    }
}

/// Result of one choice: what happened until the next one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChoiceOutcome {
    /// Reward, discounted to the time of the choice.
    pub reward: f64,
    /// Discount factor from the choice to the next one.
    pub discount: f64,
    /// Time until the next choice, in units of the set's scale, or in its mean relative deadlines if the episodes have a
    /// horizon.
    pub elapsed: f64,
    /// How the episode ended, if it did.
    pub ending: Option<Ending>,
}

/// One member of the fleet: an environment, what the network sees of it, and the schedulers that accompany it. It runs
/// one episode after the other.
///
/// Thousands of members take turns, and whatever one of them owns has left the processor's cache when its turn comes. So
/// it owns only what it needs from one choice to the next.
pub struct FleetMember {
    environment: Environment,
    /// Discount per unit of the set's scale.
    gamma: f64,
    tokenizer: Arc<Tokenizer>,
    sight: Sight,
    teacher: Option<Box<dyn Scheduler>>,
    /// Planner of the set, if the episodes ask for it.
    planner: Option<Planner>,
    /// Decision of the teacher at this point.
    advice: Assignment,
    seed: u64,
    episode: u64,
    /// What a recurrent network has seen in this episode; `None` before its first decision.
    past: Option<Past>,
}

/// What the network sees at a choice.
enum Sight {
    /// Read once at each choice, because the simple schedulers that are asked for advice know one system.
    Own(Box<Observation>),
    /// Read by the thread's own observation when it is asked for.
    Shared {
        /// What the episode has shown before.
        history: FirmHistory,
        /// Each ready job with its row, once this choice has been read.
        jobs: OnceLock<Vec<(JobId, u32)>>,
    },
}

impl Sight {
    fn new(tokenizer: &Tokenizer) -> Sight {
        match tokenizer.asks_for_advice() {
            true => Sight::Own(Box::default()),
            false => Sight::Shared { history: FirmHistory::default(), jobs: OnceLock::new() },
        }
    }

    fn start(&mut self, system: &System) {
        match self {
            Sight::Own(observation) => observation.start(system),
            Sight::Shared { history, .. } => history.start(system),
        }
    }

    fn note(&mut self, view: &SystemView<'_>) {
        match self {
            Sight::Own(observation) => observation.note(view),
            Sight::Shared { history, .. } => history.note(view),
        }
    }
}

/// Working memory of a thread, which serves all members whose turn it is there. What is left in it never changes a
/// result.
#[derive(Default)]
struct Workplace {
    observation: Observation,
    assignment: Assignment,
    /// Ready jobs, those that may be chosen first.
    ready: Vec<JobId>,
}

thread_local! {
    static WORKPLACE: Cell<Option<Box<Workplace>>> = const { Cell::new(None) };
}

/// Does some work at the thread's workplace. Work within it, such as that of another member which the thread takes over
/// while it waits, has a workplace of its own.
fn at_workplace<T>(work: impl FnOnce(&mut Workplace) -> T) -> T {
    let mut workplace = WORKPLACE.take().unwrap_or_default();
    let result = work(&mut workplace);
    WORKPLACE.set(Some(workplace));
    result
}

/// Derives a seed from a seed and a number. Seeds that are reserved for evaluation are skipped, so nothing is
/// ever learned on them.
pub fn mix(a: u64, b: u64) -> u64 {
    let mixed = mixed_seed(a, b);
    if is_for_evaluation(mixed) { mix(mixed, b) } else { mixed }
}

/// Returns the seed of a run that judges a finished training. It differs from the seeds of the training's episodes and
/// of its validation.
pub fn trial_seed(seed: u64, number: u64) -> u64 {
    mix(mix(seed, TRIALS), number)
}

/// Offset between the seeds of trials and the others.
const TRIALS: u64 = 0x0E57_0000;

impl FleetMember {
    fn new(episodes: &Episodes, seed: u64) -> Result<FleetMember, FleetError> {
        let Begun { environment, gamma, teacher, planner } = begin(episodes, seed, 0)?;
        let (tokenizer, sight) = (episodes.tokenizer.clone(), Sight::new(&episodes.tokenizer));
        let (advice, past) = (Assignment::default(), None);
        let mut member =
            FleetMember { environment, gamma, tokenizer, sight, teacher, planner, advice, seed, episode: 0, past };
        member.sight.start(member.environment.view().system);
        member.skip_forced(episodes, 1.0)?;
        member.observe();
        Ok(member)
    }

    /// Takes note that the environment is at another choice.
    fn observe(&mut self) {
        let (view, scale) = (self.environment.view(), self.environment.scale());
        match &mut self.sight {
            Sight::Own(observation) => observation.read(&self.tokenizer, scale, &view, false),
            Sight::Shared { jobs, .. } => drop(jobs.take()),
        }
    }

    fn ask_teacher(&mut self) {
        if let Some(teacher) = &mut self.teacher {
            let view = self.environment.view();
            self.advice.reset(view.cores());
            teacher.decide(&view, &mut self.advice);
        }
    }

    /// Runs all ready jobs until there is a choice or the episode ends. Returns the discounted reward meanwhile and the
    /// discount at the end.
    fn skip_forced(&mut self, episodes: &Episodes, mut discount: f64) -> Result<(f64, f64), FleetError> {
        at_workplace(|Workplace { assignment, ready, .. }| {
            let mut reward = 0.0;
            while self.environment.ending().is_none() {
                self.ask_teacher();
                let view = self.environment.view();
                self.sight.note(&view);
                let jobs_of_a_choice = if episodes.speeds > 0 { 1 } else { view.cores() + 1 };
                if episodes.tokenizer.choosable(&view, ready) >= jobs_of_a_choice {
                    break;
                }
                if let Some(planner) = &mut self.planner {
                    planner.observe(&view);
                }
                assignment.reset(view.cores());
                assignment.place(&view, ready);
                let step = self.environment.act(assignment)?;
                discount *= self.gamma.powf(step.elapsed);
                reward += discount * step.reward;
            }
            Ok((reward, discount))
        })
    }

    /// Calls `look` with what the network sees at this choice. It may be read anew for each call: whoever needs it twice
    /// keeps a [`FleetMember::sample`].
    pub fn observed<T>(&self, look: impl FnOnce(&Observation) -> T) -> T {
        let (history, jobs) = match &self.sight {
            Sight::Own(observation) => return look(observation),
            Sight::Shared { history, jobs } => (history, jobs),
        };
        at_workplace(|Workplace { observation, .. }| {
            let (view, scale) = (self.environment.view(), self.environment.scale());
            observation.read_after(history, &self.tokenizer, scale, &view, false);
            jobs.get_or_init(|| observation.jobs().to_vec());
            look(observation)
        })
    }

    /// Returns each ready job with its row at this choice, which is counted from 1; 0 for one that has none and cannot be
    /// chosen. They are in the order of the observation.
    pub fn jobs(&self) -> &[(JobId, u32)] {
        match &self.sight {
            Sight::Own(observation) => observation.jobs(),
            Sight::Shared { jobs, .. } => {
                if jobs.get().is_none() {
                    self.observed(|_| ());
                }
                jobs.get().map_or(&[], Vec::as_slice)
            }
        }
    }

    /// Returns the environment at this choice.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns a compact copy of what the network sees at this choice.
    pub fn sample(&self) -> Sample {
        let past = self.past.clone().map(Arc::new);
        let cores = self.environment.view().cores();
        Sample { past, ..self.observed(|observation| Sample::of(observation, cores)) }
    }

    /// Adds what the network sees at this choice to some samples.
    pub fn add_sample(&self, samples: &mut Samples) {
        let past = self.past.clone().map(Arc::new);
        let cores = self.environment.view().cores();
        self.observed(|observation| {
            samples.push(SampleView { past: past.as_ref(), ..SampleView::of(observation, cores) });
        });
    }

    /// Remembers a decision of a recurrent network: what it saw and its state after that. After `truncation` decisions,
    /// the state replaces what was seen before, so that no sample has a longer past. The next episode begins without a
    /// past.
    pub fn remember(&mut self, sample: SampleView<'_>, state: &[f32], truncation: usize) {
        let past = self.past.get_or_insert_with(|| Past { state: vec![0.0; state.len()], samples: Vec::new() });
        past.samples.push(Arc::new(SampleView { past: None, ..sample }.copied()));
        if past.samples.len() >= truncation {
            *past = Past { state: state.to_vec(), samples: Vec::new() };
        }
    }

    /// Returns the jobs with the highest scores, as many as there are cores; of equal scores the earlier deadline wins.
    /// `score` is called with the id and the row of each job that may be chosen, in the order of the observation.
    pub fn top_jobs(&self, mut score: impl FnMut(JobId, u32) -> f32) -> Vec<JobId> {
        let view = self.environment.view();
        let choosable = self.jobs().iter().filter(|(_, row)| *row > 0);
        let mut jobs: Vec<_> = choosable.map(|(id, row)| (*id, score(*id, *row))).collect();
        let by_deadline = |id: JobId| (view.job(id).deadline, view.job(id).tie());
        let order = |(a, score_a): &(JobId, f32), (b, score_b): &(JobId, f32)| {
            score_b.total_cmp(score_a).then_with(|| by_deadline(*a).cmp(&by_deadline(*b)))
        };
        // No two jobs are equal in this order, so the best ones are the same as after sorting all.
        let cores = view.cores();
        if cores < jobs.len() {
            jobs.select_nth_unstable_by(cores - 1, order);
            jobs.truncate(cores);
        }
        jobs.sort_unstable_by(order);
        jobs.iter().map(|(id, _)| *id).collect()
    }

    /// Plans at this choice, with `suggestions` among the alternatives; `None` if the episodes ask for no planner. It
    /// must be asked at every choice.
    pub fn plan(&mut self, suggestions: &[Vec<JobId>]) -> Result<Option<Plan>, FleetError> {
        let view = self.environment.view();
        Ok(self.planner.as_mut().map(|planner| planner.plan(&view, suggestions)).transpose()?)
    }

    /// Returns the jobs that the teacher would run.
    pub fn teacher_jobs(&self) -> Vec<JobId> {
        self.advice.cores().iter().flatten().copied().collect()
    }

    /// Returns the job that the teacher would run on each core.
    pub fn teacher_cores(&self) -> &[Option<JobId>] {
        self.advice.cores()
    }

    /// Returns the rows of some jobs, in the order of the jobs. One that may not be chosen has none.
    pub fn rows_of(&self, jobs: &[JobId]) -> Vec<u32> {
        let row = |id: &JobId| self.jobs().iter().find(|(job, _)| job == id).map(|(_, row)| *row);
        jobs.iter().filter_map(row).filter(|row| *row > 0).collect()
    }

    /// Runs these jobs at full speed until the next choice or the end of the episode.
    pub fn act(&mut self, episodes: &Episodes, jobs: &[JobId]) -> Result<ChoiceOutcome, FleetError> {
        self.act_at(episodes, jobs, &[])
    }

    /// Runs these jobs until the next choice or the end of the episode, each at its own speed: 0 for full speed, 1 + i
    /// for the network's speed `i`. No speeds stand for full speed.
    pub fn act_at(&mut self, episodes: &Episodes, jobs: &[JobId], speeds: &[u8]) -> Result<ChoiceOutcome, FleetError> {
        temponet_cancel::checkpoint();
        let (now, unit) = (self.environment.view().now, self.environment.scale().unit);
        if let Some(planner) = &mut self.planner {
            planner.carried_out(jobs);
        }
        let step = at_workplace(|Workplace { assignment, .. }| {
            let view = self.environment.view();
            assignment.reset(view.cores());
            assignment.place(&view, jobs);
            if !speeds.is_empty() {
                let speed_of = |id: JobId| {
                    let chosen = jobs.iter().zip(speeds).find(|(job, _)| **job == id).map_or(0, |(_, speed)| *speed);
                    core_speed(view.system, episodes.speeds, chosen)
                };
                for core in view.system.core_ids() {
                    if let Some(id) = assignment.cores()[core] {
                        assignment.set_speed(core, speed_of(id));
                    }
                }
            }
            self.environment.act(assignment)
        })?;
        let first = self.gamma.powf(step.elapsed);
        let (later, discount) = self.skip_forced(episodes, first)?;
        self.observe();
        let elapsed = match episodes.horizon {
            Some(horizon) => -horizon * discount.ln(),
            None => (self.environment.view().now - now).0 as f64 / unit,
        };
        Ok(ChoiceOutcome { reward: first * step.reward + later, discount, elapsed, ending: self.environment.ending() })
    }

    /// Starts the next episode that has a choice in it.
    pub fn restart(&mut self, episodes: &Episodes) -> Result<(), FleetError> {
        for _ in 0..MAX_EMPTY {
            self.episode += 1;
            let Begun { environment, gamma, teacher, planner } = begin(episodes, self.seed, self.episode)?;
            (self.environment, self.gamma, self.teacher, self.planner) = (environment, gamma, teacher, planner);
            self.past = None;
            self.sight.start(self.environment.view().system);
            self.skip_forced(episodes, 1.0)?;
            if self.environment.ending().is_none() {
                self.observe();
                return Ok(());
            }
        }
        Err(FleetError::NothingToChoose)
    }
}

/// Length of the run that compares simple schedulers, in units of the set's scale.
const BASE_TRIAL: f64 = 300.0;

/// Greatest number of episodes in a row without a choice.
const MAX_EMPTY: usize = 50;

/// The beginning of an episode.
struct Begun {
    environment: Environment,
    gamma: f64,
    teacher: Option<Box<dyn Scheduler>>,
    planner: Option<Planner>,
}

fn begin(episodes: &Episodes, seed: u64, episode: u64) -> Result<Begun, FleetError> {
    let seed = mix(seed, episode);
    let set = episodes.source.set(mix(seed, 0))?;
    if let Some(problem) = episodes.tokenizer.not_applicable(&set.system) {
        return Err(FleetError::NotReadable(problem.to_string()));
    }
    let scale = Scale::of(&episodes.tokenizer, &set.system);
    let units = |units: f64| Time((scale.unit * units).min(Time::MAX_INPUT.0 as f64) as u64).max(Time(1));
    let deadline = mean_deadline(&set) / scale.unit;
    let (horizon, tick) = (units(episodes.length.max(episodes.deadlines * deadline)), episodes.tick.map(units));
    let gamma = episodes.horizon.map_or(episodes.gamma, |horizon| (-1.0 / (horizon * deadline)).exp());
    let mut found = None;
    if let Some(name) = &episodes.teacher {
        let mut teacher = teacher(name, &set, mix(seed, 1), horizon)?;
        teacher.start(&set.system)?;
        found = Some(teacher);
    }
    let environment = |seed: u64| {
        let (scale, reward) = (scale.clone(), episodes.reward);
        let settings = EnvironmentSettings { scale, seed, horizon, reward, tick };
        Environment::new(set.clone(), settings).fading_in(-gamma.ln().recip())
    };
    let planner = match episodes.planner {
        Some(settings) => {
            let base = best_base_scheduler(&environment(mix(seed, 2)), BASE_TRIAL)?;
            let mut planner = Planner::over(base, PlannerSettings { seed: mix(seed, 3), ..settings });
            planner.start(&set.system)?;
            Some(planner)
        }
        None => None,
    };
    Ok(Begun { environment: environment(mix(seed, 1)), gamma, teacher: found, planner })
}

/// Returns the mean relative deadline of the tasks in nanoseconds, at least 1.
fn mean_deadline(set: &TaskSet) -> f64 {
    let of_list = |jobs: &[ListedJob]| {
        let sum: f64 = jobs.iter().map(|job| (job.deadline - job.release).0 as f64).sum();
        sum / jobs.len().max(1) as f64
    };
    let deadline = |task: &Task| match &task.arrival {
        Arrival::Listed(jobs) => of_list(jobs),
        _ => task.deadline.0 as f64,
    };
    (set.tasks().iter().map(deadline).sum::<f64>() / set.tasks().len().max(1) as f64).max(1.0)
}

/// Environments whose samples one thread copies at a time: that takes about a microsecond each.
const MEMBERS_PER_TASK: usize = 16;

/// Many environments that act in parallel.
pub struct Fleet {
    /// Settings of the episodes.
    pub episodes: Episodes,
    /// The environments.
    pub members: Vec<FleetMember>,
}

impl Fleet {
    /// Starts this many environments and goes to the first choice of each.
    pub fn new(episodes: Episodes, size: usize, seed: u64) -> Result<Fleet, FleetError> {
        let members = par_map(0..size as u64, 1, |_, place| {
            let mut member = FleetMember::new(&episodes, mix(seed, place))?;
            if member.environment.ending().is_some() {
                member.restart(&episodes)?;
            }
            Ok(member)
        });
        let members = members.into_iter().collect::<Result<Vec<_>, FleetError>>()?;
        Ok(Fleet { episodes, members })
    }

    /// Returns what the network sees in each environment.
    pub fn samples(&mut self) -> Vec<Arc<Sample>> {
        par_map(&mut self.members, MEMBERS_PER_TASK, |_, member| Arc::new(member.sample()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_sim::EVALUATION_SEEDS;

    /// Inverse of `mixed_seed` for a second number of zero: returns the first one.
    fn unmixed(mut z: u64) -> u64 {
        let undo_shift = |z: u64, shift: u32| (0..64 / shift).fold(z, |found, _| z ^ (found >> shift));
        let inverse = |odd: u64| (0..6).fold(1u64, |x, _| x.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(x))));
        z = undo_shift(z, 31).wrapping_mul(inverse(0x94D0_49BB_1331_11EB));
        z = undo_shift(z, 27).wrapping_mul(inverse(0xBF58_476D_1CE4_E5B9));
        undo_shift(z, 30).wrapping_sub(0x9E37_79B9_7F4A_7C15)
    }

    #[test]
    fn rewards_fade_and_episodes_end_by_the_deadlines_of_their_set() {
        let ms = Time::from_ms;
        let task = |period: u64| Task::periodic(format!("every {period} ms"), ms(period), ms(5));
        let set = Arc::new(TaskSet::new("s", vec![task(10), task(10), task(70)], 1));
        let settings =
            EpisodeSettings { length: 3.0, horizon: Some(2.0), deadlines: 4.0, ..EpisodeSettings::default() };
        let episodes = Episodes::new(TaskSetSource::Fixed(set), Tokenizer::ahead(), settings);
        // The mean deadline, 30 ms, is six times the median wcet.
        let Begun { gamma, mut environment, .. } = begin(&episodes, 5, 0).unwrap();
        assert!((gamma - (-1.0f64 / 12.0).exp()).abs() < 1e-12, "{gamma}");
        let mut assignment = Assignment::default();
        while environment.ending().is_none() {
            assignment.reset(1);
            environment.act(&mut assignment).unwrap();
        }
        assert_eq!(environment.view().now, ms(120));
    }

    #[test]
    fn seeds_kept_for_evaluation_are_passed_over() {
        for kept in EVALUATION_SEEDS.step_by(99_991) {
            let before = unmixed(kept);
            assert_eq!(mixed_seed(before, 0), kept);
            assert!(!is_for_evaluation(mix(before, 0)), "{kept}");
        }
        assert_eq!(mix(5, 7), mixed_seed(5, 7), "others stay as they are");
        assert!((8_700..9_100).all(|seed| (0..40).all(|trial| !is_for_evaluation(trial_seed(seed, trial)))));
    }
}
