//! The race: candidates run the described tasks, the clearly worse drop out, and the best of the rest is chosen.

use std::sync::Arc;

use temponet_sched::shield::Role;
use temponet_sim::ranking::{self, Scores};
use temponet_sim::statistics::{margin, standard_error};
use temponet_task::{ExecutionModel, Goal, Measure, System, Task, TaskSet, Time};

use super::Settings;
use super::candidates::{CRITICAL_FIRST, Candidate, before_evidence, is_listed};
use super::choice::{CandidateScore, Choice, Why};
use super::contest::{Contestant, Course};

/// Candidates drop out if leads like the leader's would come about by chance less often than this, for any of those that are racing.
const CLEAR: f64 = 0.01;
/// Number of standard errors beyond which a measure is likely to differ.
const EVIDENCE: f64 = 1.0;
/// Number of blocks that the effort is divided by. There are more if candidates drop out.
const PLANNED: u64 = 12;
/// Greatest number of blocks, the warm-up included.
const MOST: usize = 97;
/// Number of blocks, without the warm-up, that are simulated even beyond the effort. Fewer are no evidence: counts of jobs in two blocks differ by the same number
/// more often than Student's t expects.
const FEWEST: usize = 4;
/// Number of blocks before candidates drop out, unless they are clearly worse. A single block has no standard error.
const FEWEST_TO_HALVE: usize = 2;
/// Greatest number of jobs in a block, and number of tasks for each job of the smallest one.
const BLOCK_JOBS: u64 = 2_000;
const TASKS_PER_BLOCK: u64 = 3;
/// Decisions per job: one at its release and one at its end.
const DECISIONS: u64 = 2;

/// Chooses the candidate to follow on a system, by simulating it. `candidates` must not be empty; ties go to the first one.
///
/// Nothing is simulated where the shield guarantees every deadline, or where jobs are listed and so not known beforehand.
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
    if is_listed(system) {
        return Choice::untested(before_evidence(&system.goal, candidates), Why::Unknown, &system.goal);
    }
    if settings.is_shielded && guarantees(system, &system.tasks, |_| true) {
        let favourite = candidates.first().map_or("", Candidate::name);
        return Choice::untested(favourite, Why::Guaranteed, &system.goal);
    }
    choose_for(system, &system.tasks, candidates, settings)
}

/// Chooses the candidate to follow while tasks release jobs like `tasks`, whatever the system says that the candidates are told.
///
/// The simple candidates race first, and the network then runs against the winner alone, on other jobs: the winner was chosen on the first ones, which flatter
/// it. The network costs twenty times as much as a simple candidate, so most of the effort would otherwise tell the losers apart from it.
pub(super) fn choose_for(system: &System, tasks: &[Task], candidates: &[Candidate], settings: Settings) -> Choice {
    let favourite = candidates.first().map_or("", Candidate::name);
    let untested = |why| Choice::untested(favourite, why, &system.goal);
    let (networks, simple): (Vec<&Candidate>, Vec<&Candidate>) =
        candidates.iter().partition(|candidate| matches!(candidate, Candidate::Network(_)));
    let is_critical = |task: &Task| task.criticality > 0;
    let is_guaranteed = || settings.is_shielded && guarantees(system, tasks, is_critical);
    // That no critical job of a few thousand was lost under a candidate does not say that none will be. So the candidate that serves them by construction is
    // only left for one that serves them better.
    let guard = (matches!(system.goal.first(), Measure::Critical(_)) && !is_guaranteed()).then_some(CRITICAL_FIRST);
    let has_final = !networks.is_empty() || guard.is_some();
    let effort = if has_final { settings.effort / 2 } else { settings.effort };
    let heat = Settings { effort, ..settings };
    let Some(first) = course(system, tasks, &simple, heat) else { return untested(Why::Unknown) };
    let heat = run(&first, &simple, &heat, None);
    let Some(winner) = heat.winner(&system.goal, None) else { return untested(Why::Simulated) };
    let rows = heat.rows(&system.goal, &simple, winner);
    let choice = Choice {
        name: winner.name().into(),
        best_simple: winner.name().into(),
        jobs: winner.jobs(),
        candidates: rows,
        ..untested(Why::Simulated)
    };
    let settings = Settings {
        effort: settings.effort.saturating_sub(heat.effort()).max(effort),
        seed: settings.seed.wrapping_add(1),
        ..settings
    };
    let guards = simple.into_iter().filter(|one| Some(one.name()) == guard && one.name() != winner.name());
    let finalists: Vec<&Candidate> = networks.into_iter().chain([winner.candidate]).chain(guards).collect();
    let last = course(system, tasks, &finalists, settings).filter(|_| finalists.len() > 1);
    last.map(|last| run(&last, &finalists, &settings, guard))
        .map_or(choice.clone(), |last| last.decide(choice, &finalists, &system.goal, guard))
}

/// Whether the shield guarantees every deadline of the tasks that `are_wanted`, whatever the scheduler behind it chooses, while they release jobs like `tasks`. It
/// guarantees tasks as the system describes them.
fn guarantees(system: &System, tasks: &[Task], are_wanted: impl Fn(&Task) -> bool) -> bool {
    let overruns = system.tasks.iter().any(|task| matches!(task.execution, ExecutionModel::Overrun { .. }));
    let mut wanted = (0..system.tasks.len()).filter(|place| are_wanted(&system.tasks[*place]));
    match Role::on(system) {
        Role::StandIn(_) => system.tasks == tasks && !overruns,
        Role::StealsSlack(guarantee) => {
            wanted.all(|place| guarantee.core_of(place).is_some() && system.tasks[place] == tasks[place])
                && (guarantee.covers_overruns() || !overruns)
        }
        _ => false,
    }
}

/// Expected effort of one job over all candidates.
pub(super) fn effort_per_job<'a>(system: &System, candidates: impl Iterator<Item = &'a Candidate>) -> u64 {
    let ready = system.tasks.len() / 2;
    candidates.map(|candidate| DECISIONS * candidate.effort(ready, system.cores)).sum::<u64>().max(1)
}

/// Divides the effort into blocks of jobs; `None` if no task recurs.
fn course<'a>(system: &'a System, tasks: &[Task], candidates: &[&Candidate], settings: Settings) -> Option<Course<'a>> {
    let rate: f64 = tasks.iter().map(Task::jobs_per_second).sum();
    let jobs = (settings.effort / effort_per_job(system, candidates.iter().copied()) / PLANNED).min(BLOCK_JOBS);
    let jobs = jobs.max(tasks.len() as u64 / TASKS_PER_BLOCK).max(1);
    let by_effort = Time((jobs as f64 / rate * 1e9).min(Time::MAX_INPUT.0 as f64 / MOST as f64) as u64);
    let (block, most_blocks) = match settings.horizon {
        Some(horizon) => (Time(horizon.0 / (PLANNED + 1)), PLANNED as usize + 1),
        None => (by_effort, MOST),
    };
    (rate > 0.0 && block > Time::ZERO).then(|| Course {
        system,
        set: Arc::new(TaskSet { tasks: tasks.to_vec(), ..TaskSet::of_system("described", system) }),
        seed: settings.seed,
        begins: Time::ZERO,
        block,
        most_blocks,
        is_shielded: settings.is_shielded,
    })
}

/// A race that has ended.
struct Race<'a> {
    /// Contestants that ran to the end.
    racing: Vec<Contestant<'a>>,
    /// Contestants that were clearly worse.
    out: Vec<Contestant<'a>>,
}

/// Runs a race until one candidate is left or the effort is spent. Half of the candidates drop out whenever an equal part of the effort is spent, so that the
/// effort goes to the best ones, however dear the others are (sequential halving: Karnin, Koren and Somekh, 2013). Those that are clearly worse drop out before.
/// The candidate with the name `guard` never drops out.
fn run<'a>(course: &Course<'_>, candidates: &[&'a Candidate], settings: &Settings, guard: Option<&str>) -> Race<'a> {
    let goal = &course.system.goal;
    let entered = candidates.iter().filter_map(|candidate| Contestant::new(candidate, course));
    let mut race = Race { racing: entered.collect(), out: Vec::new() };
    let rounds = u64::from(race.racing.len().max(2).next_power_of_two().ilog2());
    let mut round = 1;
    for _ in 0..course.most_blocks {
        race.racing.retain_mut(|contestant| contestant.run_block(course));
        let Some(blocks) = race.racing.first().map(Contestant::blocks) else { break };
        if blocks >= FEWEST {
            race.drop_out(&clearly_worse(goal, &race.racing), guard);
        }
        let is_spent = |part: u64| settings.horizon.is_none() && race.effort() >= settings.effort / rounds * part;
        if race.racing.len() == 1 || blocks >= FEWEST && is_spent(rounds) {
            break;
        }
        if blocks >= FEWEST_TO_HALVE && is_spent(round) {
            race.drop_out(&worse_half(goal, &race.racing), guard);
            round += 1;
        }
    }
    race
}

impl<'a> Race<'a> {
    /// Takes contestants out of the race, except for the guard. Their places are ascending.
    fn drop_out(&mut self, places: &[usize], guard: Option<&str>) {
        for place in places.iter().rev() {
            if Some(self.racing[*place].name()) != guard {
                self.out.push(self.racing.remove(*place));
            }
        }
    }

    /// Effort of all contestants.
    fn effort(&self) -> u64 {
        self.racing.iter().chain(&self.out).map(|contestant| contestant.effort).sum()
    }

    /// The best of the contestants that ran to the end; with a guard, of those that are ahead of it in the first measure, or else the guard.
    fn winner(&self, goal: &Goal, guard: Option<&str>) -> Option<&Contestant<'a>> {
        let scores: Vec<Vec<Vec<f64>>> = self.racing.iter().map(|one| one.scores(goal, usize::MAX)).collect();
        let guard = self.racing.iter().position(|one| Some(one.name()) == guard);
        let serves_better = |place: &usize| {
            guard.is_none_or(|guard| {
                let (lead, error) = ranking::difference(&scores[*place], &scores[guard], 0);
                error.is_some_and(|error| lead > 0.0 && lead > EVIDENCE * error)
            })
        };
        best(goal, &scores, (0..scores.len()).filter(serves_better)).or(guard).map(|place| &self.racing[place])
    }

    /// Reports about the contestants, in the order of `candidates`, with their differences to `base`.
    fn rows(&self, goal: &Goal, candidates: &[&Candidate], base: &Contestant<'_>) -> Vec<CandidateScore> {
        let all = || self.racing.iter().chain(&self.out);
        let named = |candidate: &&Candidate| all().find(|one| one.name() == candidate.name());
        candidates.iter().filter_map(named).map(|one| row(goal, one, base)).collect()
    }

    /// Completes the choice of the best simple candidate by what the network did against it.
    fn decide(&self, choice: Choice, finalists: &[&Candidate], goal: &Goal, guard: Option<&str>) -> Choice {
        let base = self.racing.iter().chain(&self.out).find(|one| one.name() == choice.best_simple);
        let (Some(base), Some(winner)) = (base, self.winner(goal, guard)) else { return choice };
        let mut candidates = self.rows(goal, finalists, base);
        candidates.retain(|row| row.name != choice.best_simple);
        let is_new = |row: &CandidateScore| candidates.iter().all(|known| known.name != row.name);
        let others: Vec<CandidateScore> = choice.candidates.iter().filter(|row| is_new(row)).cloned().collect();
        candidates.extend(others);
        let why = if Some(winner.name()) == guard { Why::Guarded } else { choice.why };
        Choice { name: winner.name().into(), why, jobs: winner.jobs(), candidates, ..choice }
    }
}

/// Returns the places of the contestants that are clearly worse than the leader, ascending.
fn clearly_worse(goal: &Goal, racing: &[Contestant<'_>]) -> Vec<usize> {
    let scores: Vec<Vec<Vec<f64>>> = racing.iter().map(|one| one.scores(goal, usize::MAX)).collect();
    let Some(leader) = best(goal, &scores, 0..scores.len()) else { return Vec::new() };
    let margin = margin(scores[leader].len(), CLEAR / racing.len().max(2) as f64);
    (0..racing.len()).filter(|place| ranking::leads_for_good(goal, &scores[leader], &scores[*place], margin)).collect()
}

/// Returns the place of the best scores among `places`; the first of equal ones. The first measure that is likely to differ decides, and means where none is.
pub(super) fn best(goal: &Goal, scores: &[Vec<Vec<f64>>], places: impl Iterator<Item = usize>) -> Option<usize> {
    let is_ahead = |a: usize, b: usize| match ranking::first_beyond(goal, &scores[a], &scores[b], EVIDENCE) {
        Some(difference) => difference > 0.0,
        None => ranking::order(&ranking::means(&scores[a]), &ranking::means(&scores[b])).is_lt(),
    };
    places.reduce(|a, b| if is_ahead(b, a) { b } else { a })
}

/// Returns the places of the worse half of the contestants, ascending.
fn worse_half(goal: &Goal, racing: &[Contestant<'_>]) -> Vec<usize> {
    let scores: Vec<Vec<Vec<f64>>> = racing.iter().map(|one| one.scores(goal, usize::MAX)).collect();
    let mut worse: Vec<usize> = (0..racing.len()).collect();
    for _ in 0..racing.len().div_ceil(2) {
        let next = best(goal, &scores, worse.iter().copied());
        worse.retain(|place| Some(*place) != next);
    }
    worse
}

/// Reports about one contestant, over the blocks that `base` ran too.
fn row(goal: &Goal, one: &Contestant<'_>, base: &Contestant<'_>) -> CandidateScore {
    let (own, other) = (one.scores(goal, base.blocks()), base.scores(goal, one.blocks()));
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
        assert!(!temponet_sim::is_for_evaluation(Settings::BARE.seed));
    }

    #[test]
    fn the_first_measure_that_tells_candidates_apart_decides_and_ties_go_to_the_first() {
        let goal = Goal::new(&[temponet_task::Aim::Critical, temponet_task::Aim::Met], &[1]);
        let noisy = |lift: f64| (0..8).map(move |i| vec![1.0, 0.5 + 0.1 * f64::from(i % 3) + lift * f64::from(i % 2)]);
        let scores = |lift: f64| noisy(lift).collect::<Vec<_>>();
        let field = [scores(0.0), scores(0.0), scores(0.01)];
        assert_eq!(best(&goal, &field[..2], 0..2), Some(0));
        assert_eq!(best(&goal, &field, 0..3), Some(2));
        let mut careless = scores(0.4);
        careless.iter_mut().for_each(|block| block[0] = 0.99);
        assert_eq!(best(&goal, &[scores(0.0), careless], 0..2), Some(0), "critical jobs come first");
        assert_eq!(best(&goal, &[], 0..0), None);
    }
}
