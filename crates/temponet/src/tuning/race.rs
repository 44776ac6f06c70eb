//! The race: candidates run the described tasks, the clearly worse drop out, and the best of the rest is chosen.

use std::sync::Arc;

use temponet_sched::catalog::Mark;
use temponet_sched::shield::Role;
use temponet_sim::ranking::{self, Scores};
use temponet_sim::statistics::{margin, standard_error};
use temponet_task::{ExecutionModel, Goal, Mode, System, Task, TaskId, TaskSet, Time};

use super::Settings;
use super::by_ranking::{self, Finals};
use super::candidates::{Candidate, before_evidence, is_listed};
use super::choice::{CandidateScore, Choice, Why};
use super::contest::{Contestant, Course};
use super::guard::Guard;

/// Candidates drop out if leads like the leader's would come about by chance less often than this, for any of those
/// that are racing.
const CLEAR: f64 = 0.01;
/// Number of standard errors beyond which a measure is likely to differ.
pub(super) const EVIDENCE: f64 = 1.0;
/// Number of blocks for which the effort would suffice if no candidate dropped out.
const PLANNED: u64 = 12;
/// Factor by which blocks become shorter where they took too much effort.
const SHORTENING: u64 = 4;
/// Greatest number of blocks, the warm-up included.
const MOST: usize = 97;
/// Least number of blocks, without the warm-up, whatever the effort. With fewer, Student's t is too confident: whole
/// numbers of jobs often differ by the same amount in two blocks.
const FEWEST: usize = 4;
/// Number of blocks before candidates drop out, unless they are clearly worse. A single block has no standard error.
const FEWEST_TO_HALVE: usize = 2;
/// Greatest number of jobs in a block. The smallest block has one job for every three tasks.
const BLOCK_JOBS: u64 = 2_000;
const TASKS_PER_BLOCK: u64 = 3;
/// Greatest length of a block.
const LONGEST_BLOCK: Time = Time(Time::MAX_INPUT.0 / MOST as u64);
/// Length of the stretch of a mode in a block, at least, in longest relative deadlines.
const DEADLINES: u64 = 2;
/// Decisions per job: one at its release and one at its end.
const DECISIONS: u64 = 2;

/// Chooses the candidate to follow on a system, by simulating it. `candidates` must not be empty; ties go to the first
/// one.
///
/// Nothing is simulated where the shield guarantees every deadline, or where jobs are listed and so not known
/// beforehand.
///
/// ```
/// use temponet::tuning::{Candidate, Settings, choose};
/// use temponet::{Task, TaskSet, Time};
///
/// let ms = Time::from_ms;
/// let mut tasks = vec![Task::periodic("long", ms(100), ms(60))];
/// tasks.extend(["a", "b", "c"].map(|name| Task::periodic(name, ms(100), ms(30))));
/// let system = TaskSet::new("overload", tasks, 1).system;
/// let choice = choose(&system, &Candidate::classical(&system), Settings::BARE);
/// assert!(choice.candidate("edf").unwrap().scores < choice.candidate(&choice.name).unwrap().scores);
/// ```
pub fn choose(system: &System, candidates: &[Candidate], settings: Settings) -> Choice {
    choose_with_modes(system, &[], candidates, settings)
}

/// Chooses like [`choose`], where the shield guarantees every deadline but for what happens in `modes`. They are
/// simulated, too: each block has one stretch as the system describes its tasks, and one in each mode. Where the shield
/// does not guarantee every deadline in the first place, modes are not looked at: a scheduler does not know when they
/// come, and chooses anew when it sees them.
pub fn choose_with_modes(system: &System, modes: &[Mode], candidates: &[Candidate], settings: Settings) -> Choice {
    if is_listed(system) {
        return Choice::untested(before_evidence(system, candidates), Why::Unknown, system.goal());
    }
    let as_described = Jobs::of(system.tasks());
    if !(settings.is_shielded && guarantees(system, as_described, |_| true)) {
        return choose_for(system, as_described, candidates, settings);
    }
    if modes.is_empty() {
        let favourite = candidates.first().map_or("", Candidate::name);
        return Choice::untested(favourite, Why::Guaranteed, system.goal());
    }
    let choice = choose_for(system, Jobs { modes, ..as_described }, candidates, settings);
    Choice { modes: modes.iter().map(|mode| mode.name.clone()).collect(), ..choice }
}

/// What releases the jobs of a simulation.
#[derive(Clone, Copy)]
pub(super) struct Jobs<'a> {
    pub tasks: &'a [Task],
    /// Modes of which each has a stretch of every block.
    pub modes: &'a [Mode],
}

impl<'a> Jobs<'a> {
    /// Jobs of these tasks, in no mode.
    pub fn of(tasks: &'a [Task]) -> Jobs<'a> {
        Jobs { tasks, modes: &[] }
    }

    fn per_second(self) -> f64 {
        self.tasks.iter().map(Task::jobs_per_second).sum()
    }

    /// The set that releases the jobs, in blocks of this length.
    fn set(self, system: &System, block: Time) -> Arc<TaskSet> {
        let set = TaskSet::of_system("described", system.described_by(self.tasks.to_vec()));
        let stretch = block.0 / (self.modes.len() as u64 + 1);
        let as_described = Mode::new("described", Time::ZERO);
        let cycle: Vec<&Mode> = [&as_described].into_iter().chain(self.modes).collect();
        let of_block = |number: usize| {
            let at = move |place: u64| Time(block.0 * number as u64 + stretch * place);
            (0..).zip(cycle.clone()).map(move |(place, mode)| mode.clone().with_at(at(place)))
        };
        let has_modes = !self.modes.is_empty() && stretch > 0;
        Arc::new(set.with_modes(if has_modes { (0..MOST).flat_map(of_block).collect() } else { Vec::new() }))
    }

    /// Length of a block in which every mode shows.
    fn shortest_block(self) -> Time {
        let longest = self.tasks.iter().map(|task| task.deadline.0).max().filter(|_| !self.modes.is_empty());
        let stretches = DEADLINES * (self.modes.len() as u64 + 1);
        longest.map_or(Time::ZERO, |longest| Time(longest.saturating_mul(stretches)).min(LONGEST_BLOCK))
    }
}

/// Chooses the candidate to follow while tasks release these jobs. Candidates are started with `system`, which may
/// describe the tasks otherwise.
///
/// The simple candidates race first. Where critical jobs lead the goal, the winner must then hold its own against the
/// candidate that serves them by construction ([`Guard`]). The network runs last, against the simple candidate that is
/// left, on other jobs: that one was chosen on the first ones, which flatter it. The network costs twenty times as much
/// as a simple candidate, so most of the effort would otherwise tell the losers apart from it. On systems with chains
/// the last ones of the race run against each other instead ([`by_ranking`]).
pub(super) fn choose_for(system: &System, jobs: Jobs<'_>, candidates: &[Candidate], settings: Settings) -> Choice {
    let favourite = candidates.first().map_or("", Candidate::name);
    let goal = system.goal();
    let untested = |why| Choice::untested(favourite, why, goal);
    let (networks, simple): (Vec<&Candidate>, Vec<&Candidate>) =
        candidates.iter().partition(|candidate| matches!(candidate, Candidate::Network(_)));
    let guard = Guard::of(system, jobs, &simple, settings.is_shielded);
    let is_ranked = by_ranking::applies(goal);
    let heat = match is_ranked {
        true => by_ranking::heat(system, jobs, &simple, settings),
        false => run(system, jobs, &simple, &settings, Stays::Nobody),
    };
    let heat = match heat {
        Ok(heat) => heat,
        Err(Why::TooLong) => return Choice::untested(before_evidence(system, candidates), Why::TooLong, goal),
        Err(why) => return untested(why),
    };
    let other_jobs = |more: u64, effort: u64| Settings { effort, seed: settings.seed.wrapping_add(more), ..settings };
    let left = settings.effort.saturating_sub(heat.effort()).max(settings.effort / 2);
    if is_ranked {
        let settings = [other_jobs(2, settings.effort), other_jobs(1, left)];
        let finals = Finals { system, jobs, guard: guard.as_ref(), settings };
        return finals.choose(&heat, &simple, &networks, untested(Why::Simulated));
    }
    let Some(winner) = heat.best(goal, |_| true) else { return untested(Why::Simulated) };
    let on_trial = other_jobs(2, settings.effort);
    let service = guard.as_ref().map(|guard| guard.tries(system, jobs, winner.candidate, on_trial));
    let refused = guard.as_ref().zip(service.as_ref()).filter(|(_, service)| !service.is_as_good());
    let next = refused.and_then(|(guard, _)| guard.tries_others(system, jobs, &heat.next_to(goal, winner), on_trial));
    let named = |name: &str| heat.all().find(|one| one.name() == name).unwrap_or(winner);
    let base = match (refused, &next) {
        (_, Some((service, _))) => named(&service.name),
        (Some((guard, _)), None) => named(guard.candidate.name()),
        (None, None) => winner,
    };
    let is_guarded = refused.is_some() && next.is_none();
    let service = next.as_ref().map(|(service, _)| service.clone()).or(service);
    let mut choice = Choice {
        name: base.name().into(),
        best_simple: base.name().into(),
        jobs: base.jobs(),
        candidates: heat.rows(goal, &simple, base),
        service: service.filter(|service| !service.is_of_guard()),
        ..untested(if is_guarded { Why::Guarded } else { Why::Simulated })
    };
    // The trial shows more of those that took part in it than the heat.
    if let Some(own) = next.iter().flat_map(|(_, trial)| &trial.racing).find(|one| one.name() == base.name()) {
        let mut candidates = next.iter().flat_map(|(_, trial)| trial.rows(goal, &simple, own)).collect();
        choice.add_earlier_to(&mut candidates);
        choice = Choice { jobs: own.jobs(), candidates, ..choice };
    }
    // Nothing is to be gained where the simple candidate loses nothing.
    if base.loses_nothing(goal) {
        return Choice { why: Why::NothingLost, ..choice };
    }
    let last_settings = other_jobs(1, left);
    let guards = guard.iter().map(|guard| guard.candidate).filter(|one| one.name() != base.name());
    let finalists: Vec<&Candidate> = networks.iter().copied().chain([base.candidate]).chain(guards).collect();
    if networks.is_empty() {
        return choice;
    }
    let stays = guard.as_ref().map_or(Stays::Nobody, |guard| Stays::One(guard.candidate.name()));
    let race = |settings: Settings| run(system, jobs, &finalists, &settings, stays).ok();
    let Some(mut last) = race(last_settings) else { return choice };
    // More effort where the stakes are: a network that is ahead, of which too few critical jobs were simulated.
    let more = guard.as_ref().and_then(|guard| last.lacking(goal, guard, base.name()));
    if let Some(longer) = more.and_then(|factor| race(last_settings.times_at_most(factor)?)) {
        last = longer;
    }
    last.decide(choice, &finalists, goal, guard.as_ref())
}

/// Whether the shield guarantees every deadline of the tasks that `are_wanted`, whatever the scheduler behind it
/// chooses, while they release these jobs. It guarantees tasks as the system describes them, and in no mode.
pub(super) fn guarantees(system: &System, jobs: Jobs<'_>, are_wanted: impl Fn(&Task) -> bool) -> bool {
    let Jobs { tasks, modes } = jobs;
    if !modes.is_empty() {
        return false;
    }
    let overruns = system.tasks().iter().any(|task| matches!(task.execution, ExecutionModel::Overrun { .. }));
    let mut wanted = (0..system.tasks().len()).filter(|place| are_wanted(&system.tasks()[*place]));
    match Role::on(system) {
        Role::StandIn(_) => system.tasks() == tasks && !overruns,
        Role::StealsSlack(guarantee) => {
            wanted.all(|place| guarantee.core_of(TaskId::new(place)).is_some() && system.tasks()[place] == tasks[place])
                && (guarantee.covers_overruns() || !overruns)
        }
        _ => false,
    }
}

/// Expected effort of one job over all candidates.
pub(super) fn effort_per_job<'a>(system: &System, candidates: impl Iterator<Item = &'a Candidate>) -> u64 {
    let ready = system.tasks().len() / 2;
    candidates.map(|candidate| DECISIONS * candidate.effort(ready, system.cores())).sum::<u64>().max(1)
}

/// Divides the effort into blocks of jobs; `None` if no task recurs.
fn course<'a>(system: &'a System, jobs: Jobs<'_>, candidates: &[&Candidate], settings: Settings) -> Option<Course<'a>> {
    let rate = jobs.per_second();
    let released = jobs;
    let effort_per_job = effort_per_job(system, candidates.iter().copied());
    let jobs = (settings.effort / effort_per_job / PLANNED).min(BLOCK_JOBS).max(fewest_jobs(released.tasks));
    let by_effort = Time((jobs as f64 / rate * 1e9).min(LONGEST_BLOCK.0 as f64) as u64);
    let (block, most_blocks) = match settings.horizon {
        Some(horizon) => (Time(horizon.0 / (PLANNED + 1)), PLANNED as usize + 1),
        None => (by_effort.max(released.shortest_block()), MOST),
    };
    (rate > 0.0 && block > Time::ZERO).then(|| Course {
        system,
        set: released.set(system, block),
        seed: settings.seed,
        begins: Time::ZERO,
        block,
        most_blocks,
        is_shielded: settings.is_shielded,
        planned: match settings.horizon {
            Some(_) => u64::MAX,
            None => (settings.effort / PLANNED).max(jobs * effort_per_job),
        },
    })
}

/// Number of jobs in the smallest block.
fn fewest_jobs(tasks: &[Task]) -> u64 {
    (tasks.len() as u64 / TASKS_PER_BLOCK).max(1)
}

/// Who runs to the end of a race, however it goes.
#[derive(Clone, Copy)]
pub(super) enum Stays<'a> {
    Nobody,
    One(&'a str),
    Everybody,
    /// All but those that are clearly worse: there are no halvings.
    UnlessClearlyWorse,
}

impl Stays<'_> {
    fn keeps(self, name: &str) -> bool {
        match self {
            Stays::Nobody | Stays::UnlessClearlyWorse => false,
            Stays::One(kept) => kept == name,
            Stays::Everybody => true,
        }
    }
}

/// A race that has ended.
pub(super) struct Race<'a> {
    /// Contestants that ran to the end.
    pub racing: Vec<Contestant<'a>>,
    /// Contestants that were clearly worse.
    out: Vec<Contestant<'a>>,
}

/// Runs a race, with shorter blocks if those that were planned take far more effort than planned. Fails if no task
/// recurs, or if even the shortest blocks take too much.
pub(super) fn run<'a>(
    system: &System,
    jobs: Jobs<'_>,
    candidates: &[&'a Candidate],
    settings: &Settings,
    stays: Stays<'_>,
) -> Result<Race<'a>, Why> {
    let mut course = course(system, jobs, candidates, *settings).ok_or(Why::Unknown)?;
    loop {
        if let Some(race) = run_on(&course, candidates, settings, stays) {
            return Ok(race);
        }
        course.block = Time(course.block.0 / SHORTENING);
        if course.block.as_secs_f64() * jobs.per_second() < fewest_jobs(jobs.tasks) as f64 {
            return Err(Why::TooLong);
        }
        course.set = jobs.set(system, course.block);
    }
}

/// Runs a race until one candidate is left or the effort is spent; `None` if it takes far more effort than planned.
/// Half of the candidates drop out whenever an equal part of the effort is spent, so that the effort goes to the best
/// ones, however dear the others are (sequential halving: Karnin, Koren and Somekh, 2013). Those that are clearly worse
/// drop out before.
fn run_on<'a>(
    course: &Course<'_>,
    candidates: &[&'a Candidate],
    settings: &Settings,
    stays: Stays<'_>,
) -> Option<Race<'a>> {
    let goal = course.system.goal();
    let entered = candidates.iter().filter_map(|candidate| Contestant::new(candidate, course));
    let mut race = Race { racing: entered.collect(), out: Vec::new() };
    let rounds = u64::from(race.racing.len().max(2).next_power_of_two().ilog2());
    let mut round = 1;
    for block in 1..=course.most_blocks as u64 {
        let allowed = course.planned.saturating_mul(settings.patience.saturating_mul(block));
        let mut left = allowed.saturating_sub(race.effort());
        race.racing.retain_mut(|contestant| contestant.run_block(course, &mut left));
        if left == 0 {
            return None;
        }
        let Some(blocks) = race.racing.first().map(Contestant::blocks) else { break };
        if blocks >= FEWEST {
            race.drop_out(&clearly_worse(goal, &race.racing), stays);
        }
        let is_spent = |part: u64| settings.horizon.is_none() && race.effort() >= settings.effort / rounds * part;
        if race.racing.len() == 1 || blocks >= FEWEST && is_spent(rounds) {
            break;
        }
        if !matches!(stays, Stays::UnlessClearlyWorse) && blocks >= FEWEST_TO_HALVE && is_spent(round) {
            race.drop_out(&worse_half(goal, &race.racing), stays);
            round += 1;
        }
    }
    Some(race)
}

impl<'a> Race<'a> {
    /// Takes contestants out of the race, except for those that stay. Their places are ascending.
    fn drop_out(&mut self, places: &[usize], stays: Stays<'_>) {
        for place in places.iter().rev() {
            if !stays.keeps(self.racing[*place].name()) {
                self.out.push(self.racing.remove(*place));
            }
        }
    }

    /// All contestants.
    pub fn all(&self) -> impl Iterator<Item = &Contestant<'a>> {
        self.racing.iter().chain(&self.out)
    }

    /// Effort of all contestants.
    fn effort(&self) -> u64 {
        self.all().map(|contestant| contestant.effort).sum()
    }

    /// The candidates after the winner, those that did best first.
    fn next_to(&self, goal: &Goal, winner: &Contestant<'_>) -> Vec<&'a Candidate> {
        // Of equal ones, those that stayed longer come first.
        let all: Vec<&Contestant<'a>> = self.racing.iter().chain(self.out.iter().rev()).collect();
        let scores: Vec<Vec<Vec<f64>>> = all.iter().map(|one| one.scores(goal, usize::MAX)).collect();
        let candidates = in_order(goal, &scores).into_iter().map(|place| all[place].candidate);
        candidates.filter(|one| one.name() != winner.name()).collect()
    }

    /// The best of the contestants that ran to the end and may win.
    pub fn best(&self, goal: &Goal, may_win: impl Fn(&Contestant<'a>) -> bool) -> Option<&Contestant<'a>> {
        let scores: Vec<Vec<Vec<f64>>> = self.racing.iter().map(|one| one.scores(goal, usize::MAX)).collect();
        let places = (0..scores.len()).filter(|place| may_win(&self.racing[*place]));
        best(goal, &scores, places).map(|place| &self.racing[place])
    }

    /// Reports about the contestants, in the order of `candidates`, with their differences to `base`.
    pub fn rows(&self, goal: &Goal, candidates: &[&Candidate], base: &Contestant<'_>) -> Vec<CandidateScore> {
        let named = |candidate: &&Candidate| self.all().find(|one| one.name() == candidate.name());
        candidates.iter().filter_map(named).map(|one| row(goal, one, base)).collect()
    }

    /// Completes the choice of the best simple candidate by what the network did against it.
    fn decide(&self, choice: Choice, finalists: &[&Candidate], goal: &Goal, guard: Option<&Guard<'_>>) -> Choice {
        let Some(base) = self.all().find(|one| one.name() == choice.best_simple) else { return choice };
        let service = |one: &Contestant<'_>| guard.map(|guard| guard.service(goal, self, one));
        let is_network = |one: &Contestant<'_>| matches!(one.candidate, Candidate::Network(_));
        let may_win = |one: &Contestant<'_>| {
            one.name() == base.name() || is_network(one) && service(one).is_none_or(|service| service.is_as_good())
        };
        let Some(winner) = self.best(goal, may_win) else { return choice };
        let mut candidates = self.rows(goal, finalists, base);
        candidates.retain(|row| row.name != choice.best_simple);
        choice.add_earlier_to(&mut candidates);
        let refused = self.racing.iter().find(|one| is_network(one) && !may_win(one));
        let refused = refused.filter(|_| winner.candidate.has(Mark::CriticalFirst));
        let (why, service) = if winner.name() != base.name() {
            (Why::Simulated, service(winner))
        } else if let Some(refused) = refused.filter(|_| choice.why != Why::Guarded) {
            (Why::Guarded, service(refused))
        } else {
            (choice.why, choice.service.clone())
        };
        Choice { name: winner.name().into(), why, jobs: winner.jobs(), candidates, service, ..choice }
    }

    /// How much more effort it takes to tell whether a network that is ahead of the base serves the critical jobs as
    /// well as the guard; `None` if it is not ahead, if that is known, or if no effort would tell.
    fn lacking(&self, goal: &Goal, guard: &Guard<'_>, base: &str) -> Option<u64> {
        let ahead = self.best(goal, |one| one.name() == base || matches!(one.candidate, Candidate::Network(_)))?;
        (ahead.name() != base).then(|| guard.service(goal, self, ahead).lacks())?
    }
}

/// Returns the places of the contestants that are clearly worse than the leader, ascending.
fn clearly_worse(goal: &Goal, racing: &[Contestant<'_>]) -> Vec<usize> {
    let scores: Vec<Vec<Vec<f64>>> = racing.iter().map(|one| one.scores(goal, usize::MAX)).collect();
    let Some(leader) = best(goal, &scores, 0..scores.len()) else { return Vec::new() };
    let margin = margin(scores[leader].len(), CLEAR / racing.len().max(2) as f64);
    (0..racing.len()).filter(|place| ranking::leads_for_good(goal, &scores[leader], &scores[*place], margin)).collect()
}

/// Returns the place of the best scores among `places`; the first of equal ones. The first measure that is likely to
/// differ decides, and means where none is.
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
    let mut worse = in_order(goal, &scores).split_off(racing.len().div_ceil(2));
    worse.sort_unstable();
    worse
}

/// Returns the places of scores, the best first.
pub(super) fn in_order(goal: &Goal, scores: &[Vec<Vec<f64>>]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..scores.len()).collect();
    let next = || {
        let next = best(goal, scores, left.iter().copied())?;
        left.retain(|place| *place != next);
        Some(next)
    };
    std::iter::from_fn(next).collect()
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
        jobs: base.jobs_in(one.blocks()),
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
