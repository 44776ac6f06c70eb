//! The race: all candidates run the described tasks, the clearly worse drop out, and the best of the rest is chosen.

use std::sync::Arc;

use temponet_sched::shield::Role;
use temponet_sim::ranking::{self, Scores};
use temponet_sim::statistics::standard_error;
use temponet_task::{ExecutionModel, Goal, System, Task, TaskSet, Time};

use super::Settings;
use super::candidates::{Candidate, is_listed};
use super::choice::{CandidateScore, Choice, Why};
use super::contest::{Contestant, Course};

/// Seed of the simulated jobs. It is constant, so that a choice is a function of the system, and it is no evaluation seed.
const SEED: u64 = 7_300_000_000;
/// Number of standard errors beyond which a candidate is clearly worse and drops out.
const CLEAR: f64 = 3.0;
/// Number of standard errors beyond which a difference between two candidates is evidence.
const EVIDENCE: f64 = 1.0;
/// Number of blocks, without the warm-up, before a candidate may drop out.
const FIRST: usize = 6;
/// Number of blocks that the effort is divided by. There are more if candidates drop out.
const PLANNED: u64 = 12;
/// Greatest number of blocks, the warm-up included.
const MOST: usize = 49;
/// Number of blocks, without the warm-up, that are simulated even beyond the effort. Fewer would be no evidence.
const FEWEST: usize = 4;
/// Greatest number of jobs in a block, and number of tasks for each job of the smallest one.
const BLOCK_JOBS: u64 = 2_000;
const TASKS_PER_BLOCK: u64 = 3;
/// Decisions per job: one at its release and one at its end.
const DECISIONS: u64 = 2;

/// Chooses the candidate to follow on a system, by simulating it. `candidates` must not be empty; the first one is the favourite, which is left only for one
/// that is better by more than the standard error of the difference, and by more the more rivals there are.
///
/// Nothing is simulated where the shield guarantees every deadline, or where jobs are listed and so not known beforehand: the favourite is followed.
///
/// ```
/// use temponet::tuning::{Candidate, Settings, choose};
/// use temponet::{Task, TaskSet, Time};
///
/// let ms = Time::from_ms;
/// let mut tasks = vec![Task::periodic("long", ms(100), ms(60))];
/// tasks.extend(["a", "b", "c"].map(|name| Task::periodic(name, ms(100), ms(30))));
/// let system = TaskSet::new("overload", tasks, 1).system();
/// let choice = choose(&system, &Candidate::classical(&system), Settings::BARE);
/// assert!(choice.candidate("edf").unwrap().scores < choice.candidate(&choice.name).unwrap().scores);
/// ```
pub fn choose(system: &System, candidates: &[Candidate], settings: Settings) -> Choice {
    let favourite = candidates.first().map_or("", Candidate::name);
    let untested = |why| Choice::untested(favourite, why, &system.goal);
    if is_listed(system) {
        return untested(Why::Unknown);
    }
    if settings.is_shielded && leaves_nothing_to_choose(system) {
        return untested(Why::Guaranteed);
    }
    let Some(course) = course(system, candidates, settings) else { return untested(Why::Unknown) };
    run(&course, candidates, settings.effort)
}

/// Whether the shield guarantees every deadline, whatever the scheduler behind it chooses.
fn leaves_nothing_to_choose(system: &System) -> bool {
    let overruns = |task: &Task| matches!(task.execution, ExecutionModel::Overrun { .. });
    let overruns = system.tasks.iter().any(overruns);
    match Role::on(system) {
        Role::StandIn(_) => !overruns,
        Role::StealsSlack(guarantee) => guarantee.is_for_all() && (guarantee.covers_overruns() || !overruns),
        _ => false,
    }
}

/// Divides the effort into blocks of jobs; `None` if no task recurs.
fn course<'a>(system: &'a System, candidates: &[Candidate], settings: Settings) -> Option<Course<'a>> {
    let rate: f64 = system.tasks.iter().map(Task::jobs_per_second).sum();
    let ready = system.tasks.len() / 2;
    let per_job: u64 = candidates.iter().map(|candidate| DECISIONS * candidate.effort(ready, system.cores)).sum();
    let jobs = (settings.effort / per_job.max(1) / PLANNED).min(BLOCK_JOBS);
    let jobs = jobs.max(system.tasks.len() as u64 / TASKS_PER_BLOCK).max(1);
    let block = Time((jobs as f64 / rate * 1e9).min(Time::MAX_INPUT.0 as f64 / MOST as f64) as u64);
    (rate > 0.0 && block > Time::ZERO).then(|| Course {
        system,
        set: Arc::new(TaskSet::of_system("described", system)),
        seed: SEED,
        begins: Time::ZERO,
        block,
        most_blocks: MOST,
        is_shielded: settings.is_shielded,
    })
}

/// Runs the race until one candidate is left or the effort is spent.
fn run(course: &Course<'_>, candidates: &[Candidate], effort: u64) -> Choice {
    let goal = &course.system.goal;
    let entered = candidates.iter().filter_map(|candidate| Contestant::new(candidate, course));
    let (mut racing, mut out): (Vec<Contestant>, Vec<Contestant>) = (entered.collect(), Vec::new());
    for _ in 0..course.most_blocks {
        racing.retain_mut(|contestant| contestant.run_block(course));
        let Some(blocks) = racing.first().map(Contestant::blocks) else { break };
        if blocks >= FIRST {
            let dropped = clearly_worse(goal, &racing);
            for place in dropped.into_iter().rev() {
                out.push(racing.remove(place));
            }
        }
        let spent: u64 = racing.iter().chain(&out).map(|contestant| contestant.effort).sum();
        if racing.len() == 1 && blocks >= FIRST || blocks >= FEWEST && spent >= effort {
            break;
        }
    }
    judge(goal, candidates, &racing, &out)
}

/// Returns the places of the contestants that are clearly worse than the leader, ascending.
fn clearly_worse(goal: &Goal, racing: &[Contestant<'_>]) -> Vec<usize> {
    let scores: Vec<Vec<Vec<f64>>> = racing.iter().map(|one| one.scores(goal, usize::MAX)).collect();
    let leader = best(goal, &scores, None);
    let is_worse = |place: &usize| {
        for measure in 0..goal.measures().len() {
            match ranking::difference(&scores[leader], &scores[*place], measure) {
                (difference, Some(error)) if difference > (CLEAR * error).max(NOTHING) => return true,
                // It may be better in a more important measure, which more blocks can tell.
                (difference, _) if difference < -NOTHING => return false,
                _ => {}
            }
        }
        false
    };
    (0..racing.len()).filter(is_worse).collect()
}

/// Differences below this come from rounding.
const NOTHING: f64 = 1e-9;

/// Returns the place of the best scores. The favourite is left only for one that is better with evidence; without a favourite, means decide where evidence
/// does not.
pub(super) fn best(goal: &Goal, scores: &[Vec<Vec<f64>>], favourite: Option<(usize, f64)>) -> usize {
    let is_ahead = |a: usize, b: usize, margin: f64| {
        ranking::first_beyond(goal, &scores[a], &scores[b], margin).map(|(_, difference)| difference > 0.0)
    };
    let means: Vec<Vec<f64>> = scores.iter().map(|scores| ranking::means(scores)).collect();
    let by_mean = |a: usize, b: usize| ranking::order(&means[a], &means[b]).is_lt();
    let rivals = (0..scores.len()).filter(|place| match favourite {
        Some((favourite, margin)) => is_ahead(*place, favourite, margin) == Some(true),
        None => true,
    });
    let better = |a: usize, b: usize| if is_ahead(b, a, EVIDENCE).unwrap_or_else(|| by_mean(b, a)) { b } else { a };
    rivals.reduce(better).or(favourite.map(|(place, _)| place)).unwrap_or(0)
}

/// Number of standard errors by which the best of several rivals must be ahead. The best of k rivals that are equal to the favourite is ahead by about
/// √(2 ln k) standard errors by chance.
fn beyond_chance(rivals: usize) -> f64 {
    (2.0 * (rivals.max(1) as f64).ln()).sqrt().max(EVIDENCE)
}

/// Chooses among the contestants that are left, and reports about all of them.
fn judge(goal: &Goal, candidates: &[Candidate], racing: &[Contestant<'_>], out: &[Contestant<'_>]) -> Choice {
    let favourite = candidates.first().map_or("", Candidate::name);
    let scores: Vec<Vec<Vec<f64>>> = racing.iter().map(|one| one.scores(goal, usize::MAX)).collect();
    let place = racing.iter().position(|one| one.name() == favourite);
    let margin = beyond_chance(scores.len().saturating_sub(1));
    let Some(chosen) = racing.get(best(goal, &scores, place.map(|place| (place, margin)))) else {
        return Choice::untested(favourite, Why::Simulated, goal);
    };
    let all = || racing.iter().chain(out);
    let named = |candidate: &Candidate| all().find(|one| one.name() == candidate.name());
    let rows = candidates.iter().filter_map(named).map(|one| row(goal, one, chosen));
    Choice {
        name: chosen.name().into(),
        jobs: chosen.jobs(),
        candidates: rows.collect(),
        ..Choice::untested(favourite, Why::Simulated, goal)
    }
}

/// Reports about one candidate.
fn row(goal: &Goal, one: &Contestant<'_>, chosen: &Contestant<'_>) -> CandidateScore {
    let (own, other) = (one.scores(goal, usize::MAX), chosen.scores(goal, one.blocks()));
    let errors = |scores: &Scores, place: usize| standard_error(&ranking::values(scores, place)).unwrap_or(0.0);
    let places = 0..goal.measures().len();
    let differences = places.clone().map(|place| ranking::difference(&own, &other, place));
    let (differences, difference_errors) = differences.map(|(mean, error)| (mean, error.unwrap_or(0.0))).unzip();
    CandidateScore {
        name: one.name().into(),
        // Pseudo-values can leave the range of shares by a little.
        scores: ranking::means(&own).into_iter().map(|score| score.clamp(0.0, 1.0)).collect(),
        errors: places.map(|place| errors(&own, place)).collect(),
        differences,
        difference_errors,
        blocks: one.blocks(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_not_for_evaluation() {
        assert!(!temponet_sim::is_for_evaluation(SEED));
    }

    #[test]
    fn the_favourite_is_left_only_on_evidence_and_level_by_level() {
        let goal = Goal::new(&[temponet_task::Aim::Critical, temponet_task::Aim::Met], &[1]);
        let noisy = |lift: f64| (0..8).map(move |i| vec![1.0, 0.5 + 0.1 * f64::from(i % 3) + lift * f64::from(i % 2)]);
        let scores = |lift: f64| noisy(lift).collect::<Vec<_>>();
        let field = [scores(0.0), scores(0.0), scores(0.01)];
        assert_eq!(best(&goal, &field[..2], Some((1, 1.0))), 1, "ties go to the favourite");
        assert_eq!(best(&goal, &field, Some((0, 1.0))), 2);
        assert_eq!(best(&goal, &field, Some((0, 5.0))), 0, "not enough evidence");
        let mut careless = scores(0.4);
        careless.iter_mut().for_each(|block| block[0] = 0.99);
        assert_eq!(best(&goal, &[scores(0.0), careless], Some((0, 1.0))), 0, "critical jobs come first");
    }
}
