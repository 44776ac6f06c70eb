//! Environments alone, as policy optimization acts in them: processor time of a choice and memory of an environment.
//!
//! What a training's environments do is done here without a network: each is read for it, its state is kept for
//! learning, and a random choice is carried out. Of many environments each makes one choice in turn, as in a training,
//! so that whatever an environment owns is cold when its turn comes. All of it is on one thread, whose processor time
//! counts, not the time that passes.
//!
//! The digest is over everything that the network would see and every reward. It tells whether two programs make the
//! same environments, bit for bit.

use std::time::Duration;

use rand::SeedableRng;
use rand_pcg::Pcg64;
use serde::Serialize;
use temponet_lab::progress::Progress;
use temponet_train::{
    ChoiceOutcome, Episodes, Fleet, FleetError, FleetMember, Recipe, SampleView, Samples, TaskSetSource, TrainError,
    gumbel,
};

use crate::{MeasureError, control, rss_bytes};

/// Figures of the environments of one stage of a recipe.
#[derive(Serialize)]
pub struct EnvironmentFigures {
    /// Memory of one environment in bytes: growth of the process by as many as the greatest case has, divided by their
    /// number (Linux only, and not with `--quick`).
    pub bytes_per_environment: Option<f64>,
    /// Processor time of the beginning of an episode in microseconds: a set is drawn, and its first choice is reached.
    pub begin_us: f64,
    /// Mean number of choices of an episode.
    pub choices_per_episode: f64,
    /// Mean number of rows that the network would see at a choice, without the idle row.
    pub rows_per_choice: f64,
    /// Environments in turn.
    pub cases: Vec<TurnCase>,
    /// Digest of what the environments showed and of their rewards.
    pub digest: String,
    /// Time of one step of a fixed loop, in nanoseconds.
    pub control_ns: f64,
}

/// Figures of some environments that take turns.
#[derive(Serialize)]
pub struct TurnCase {
    /// Number of environments.
    pub environments: usize,
    /// Choices of all environments in one round.
    pub choices: usize,
    /// Processor time of a choice in microseconds, without the beginnings of episodes.
    pub us_per_choice: f64,
    /// The same with the beginnings of as many episodes as end in the long run.
    pub us_per_choice_with_episodes: f64,
}

/// Numbers of environments that take turns.
const ENVIRONMENTS: [usize; 4] = [1, 64, 1_024, 16_384];
/// The same with `--quick`.
const QUICK: [usize; 2] = [1, 64];
/// Choices of all environments in a round, and with `--quick`.
const CHOICES: (usize, usize) = (1 << 17, 1 << 11);
/// Environments and choices of each that the digest and the lengths of episodes are taken from, and with `--quick`.
const WATCHED: (usize, (usize, usize)) = (64, (1_024, 32));
const SEED: u64 = 1;

/// Measures the environments of a stage of a recipe, which is counted from 0: the median of this many rounds.
pub fn measure(recipe: &Recipe, stage: usize, rounds: u32, quick: bool) -> Result<EnvironmentFigures, MeasureError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(|| measure_on_one_thread(&episodes(recipe, stage), rounds, quick))
}

/// Returns the episodes of a stage.
fn episodes(recipe: &Recipe, stage: usize) -> Episodes {
    let workload = recipe.workloads().nth(stage).unwrap_or(&recipe.workload);
    let reward = recipe.stage.get(stage).and_then(|stage| stage.reward).unwrap_or(recipe.episode.reward);
    let settings = temponet_train::EpisodeSettings { reward, ..recipe.episode };
    let episodes = Episodes::new(TaskSetSource::Drawn(Box::new(workload.clone())), recipe.tokenizer(), settings);
    Episodes { speeds: recipe.network.body.keys().speeds, ..episodes }
}

fn measure_on_one_thread(episodes: &Episodes, rounds: u32, quick: bool) -> Result<EnvironmentFigures, MeasureError> {
    let before = control();
    let (sizes, choices) = if quick { (&QUICK[..], CHOICES.1) } else { (&ENVIRONMENTS[..], CHOICES.0) };
    let progress = Progress::steps(1 + u64::from(rounds) * sizes.len() as u64);
    progress.say("environments");
    let watched = watch(episodes, if quick { WATCHED.1.1 } else { WATCHED.1.0 })?;
    progress.step();
    let mut cases = Vec::new();
    let (mut begins, mut bytes) = (Vec::new(), None);
    // The most environments first: those after them use the memory of those before again, and the process does not grow.
    for size in sizes.iter().rev().copied() {
        let empty = rss_bytes();
        let mut turns = Turns::new(episodes, size)?;
        let full = rss_bytes();
        let grown = empty.zip(full).map(|(empty, full)| (full - empty).max(0.0) / size as f64);
        bytes = bytes.or(grown);
        // The first choices of all environments are alike: every task has released its first job.
        turns.round(choices)?;
        let mut each = Vec::new();
        for _ in 0..rounds {
            let Spent { acting, beginning, episodes } = turns.round(choices)?;
            each.push(acting.as_secs_f64() * 1e6 / turns.choices_of_round(choices) as f64);
            if episodes > 0 {
                begins.push(beginning.as_secs_f64() * 1e6 / episodes as f64);
            }
            progress.step();
        }
        let choices = turns.choices_of_round(choices);
        cases.push(TurnCase {
            environments: size,
            choices,
            us_per_choice: median(&mut each),
            us_per_choice_with_episodes: 0.0,
        });
    }
    cases.reverse();
    let begin_us = if begins.is_empty() { 0.0 } else { median(&mut begins) };
    for case in &mut cases {
        case.us_per_choice_with_episodes = case.us_per_choice + begin_us / watched.choices_per_episode;
    }
    progress.finish();
    Ok(EnvironmentFigures {
        // A few environments take less than what the process grows by anyway.
        bytes_per_environment: bytes.filter(|_| !quick),
        begin_us,
        choices_per_episode: watched.choices_per_episode,
        rows_per_choice: watched.rows_per_choice,
        cases,
        digest: format!("{:016x}", watched.digest),
        control_ns: (before + control()) / 2.0,
    })
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What some environments showed.
struct Watched {
    choices_per_episode: f64,
    rows_per_choice: f64,
    digest: u64,
}

/// Acts in some environments and takes down everything that they show.
fn watch(episodes: &Episodes, choices: usize) -> Result<Watched, TrainError> {
    let (mut digest, mut ended, mut rows) = (Digest(0), 0u64, 0);
    let mut fleet = Fleet::new(episodes.clone(), WATCHED.0, SEED)?;
    let (mut rng, mut kept) = (Pcg64::seed_from_u64(SEED), Samples::default());
    for member in &mut fleet.members {
        kept.clear();
        member.add_sample(&mut kept);
        for _ in 0..choices {
            let state = kept.get(kept.len() - 1);
            digest.sample(state);
            rows += state.counts.len();
            let jobs = member.top_jobs(|_, _| gumbel(&mut rng));
            member.rows_of(&jobs).into_iter().for_each(|row| digest.add(u64::from(row)));
            let outcome = member.act(&fleet.episodes, &jobs)?;
            let ChoiceOutcome { reward, discount, elapsed, .. } = outcome;
            [reward, discount, elapsed].into_iter().for_each(|number| digest.add(number.to_bits()));
            if outcome.ending.is_some() {
                ended += 1;
                member.add_sample(&mut kept);
                digest.sample(kept.get(kept.len() - 1));
                member.restart(&fleet.episodes)?;
            }
            member.add_sample(&mut kept);
        }
    }
    let choices = (WATCHED.0 * choices) as f64;
    let (choices_per_episode, rows_per_choice) = (choices / ended.max(1) as f64, rows as f64 / choices);
    Ok(Watched { choices_per_episode, rows_per_choice, digest: digest.0 })
}

/// Digest of a sequence of numbers.
struct Digest(u64);

impl Digest {
    fn add(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    }

    fn sample(&mut self, sample: SampleView<'_>) {
        self.add(sample.counts.len() as u64 | u64::from(sample.cores) << 32);
        sample.idle.iter().chain(sample.tokens).for_each(|value| self.add(u64::from(*value)));
        sample.counts.iter().for_each(|count| self.add(u64::from(*count)));
        sample.real.iter().chain(sample.bias).for_each(|number| self.add(u64::from(number.to_bits())));
    }
}

/// Environments that take turns.
struct Turns {
    fleet: Fleet,
    rng: Pcg64,
    kept: Vec<Samples>,
}

/// Processor time of a round.
struct Spent {
    /// Time of the choices.
    acting: Duration,
    /// Time of the beginnings of episodes.
    beginning: Duration,
    /// Number of these.
    episodes: u64,
}

impl Turns {
    fn new(episodes: &Episodes, size: usize) -> Result<Turns, TrainError> {
        let fleet = Fleet::new(episodes.clone(), size, SEED)?;
        Ok(Turns { rng: Pcg64::seed_from_u64(SEED), kept: vec![Samples::default(); size], fleet })
    }

    /// Number of choices of a round in which about this many are wanted.
    fn choices_of_round(&self, choices: usize) -> usize {
        choices.div_ceil(self.fleet.members.len()) * self.fleet.members.len()
    }

    fn round(&mut self, choices: usize) -> Result<Spent, TrainError> {
        let Turns { fleet, rng, kept } = self;
        let Fleet { episodes, members } = fleet;
        kept.iter_mut().for_each(Samples::clear);
        let (begin, mut beginning, mut ended) = (thread_time(), Duration::ZERO, 0);
        for _ in 0..choices.div_ceil(members.len()) {
            for (member, kept) in members.iter_mut().zip(&mut *kept) {
                if kept.len() >= ROUND {
                    kept.clear();
                }
                if turn(episodes, member, kept, rng)? {
                    let begin = thread_time();
                    member.restart(episodes)?;
                    (beginning, ended) = (beginning + (thread_time() - begin), ended + 1);
                }
            }
        }
        Ok(Spent { acting: thread_time() - begin - beginning, beginning, episodes: ended })
    }
}

/// States of an environment that are kept for learning.
const ROUND: usize = 32;

/// Makes a choice; returns whether it ended the episode.
fn turn(
    episodes: &Episodes,
    member: &mut FleetMember,
    kept: &mut Samples,
    rng: &mut Pcg64,
) -> Result<bool, FleetError> {
    member.add_sample(kept);
    let jobs = member.top_jobs(|_, _| gumbel(rng));
    std::hint::black_box(member.rows_of(&jobs));
    Ok(member.act(episodes, &jobs)?.ending.is_some())
}

/// Processor time of this thread.
#[cfg(target_os = "linux")]
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Time that has passed, where a thread's own is not known.
#[cfg(not(target_os = "linux"))]
fn thread_time() -> Duration {
    static BEGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    BEGIN.get_or_init(std::time::Instant::now).elapsed()
}
