//! The choice on systems with chains: by evidence over the whole goal, and by nothing less than certainty for the
//! network.
//!
//! The guard of critical jobs asks whether a candidate loses some of them, and nothing else. Where chains come next in
//! the goal, candidates that serve the critical jobs alike differ in chains that are late once in hundreds or
//! thousands, and one that is a little ahead of the guard there may be behind another one. So the guard is a candidate
//! like any other:
//!
//! - All simple candidates race, without halvings: a few hundred jobs say nothing of chains that are rarely late, and
//!   the candidates would be chosen by what matters least.
//! - The first ones by the evidence run together with the guard, on other jobs. The first of them is the best simple
//!   one, unless another is ahead of it with certainty.
//! - The network runs against that one, and is followed only if it is ahead with certainty.
//!
//! Certain is what chance brings about in one case of twenty, over all measures and rivals. Where the means and the
//! evidence disagree, or the network is ahead without certainty, more jobs are simulated.

use temponet_sim::ranking::{self, Scores};
use temponet_sim::statistics::margin;
use temponet_task::{Goal, Measure, System};

use super::Settings;
use super::candidates::Candidate;
use super::choice::{Choice, Why};
use super::contest::Contestant;
use super::guard::{Guard, MOST_EFFORT};
use super::race::{EVIDENCE, Jobs, Race, Stays, in_order, run};

/// Chance of a false lead in either direction, over all measures and rivals.
const CHANCE: f64 = 0.025;

/// Factor on the effort of a final whose result is open.
const LONGER: u64 = 3;
/// Number of simple candidates in their final, beside the guard.
pub(super) const FINALISTS: usize = 4;

/// Whether the candidates of a system are ranked by its whole goal.
pub(super) fn applies(goal: &Goal) -> bool {
    goal.measures().contains(&Measure::Chains)
}

/// Lets all simple candidates race.
pub(super) fn heat<'a>(
    system: &System,
    jobs: Jobs<'_>,
    simple: &[&'a Candidate],
    settings: Settings,
) -> Result<Race<'a>, Why> {
    let longer = settings.times(MOST_EFFORT).unwrap_or(settings);
    run(system, jobs, simple, &longer, Stays::UnlessClearlyWorse)
}

/// The runs that follow on a race of the simple candidates.
pub(super) struct Finals<'a> {
    pub system: &'a System,
    pub jobs: Jobs<'a>,
    pub guard: Option<&'a Guard<'a>>,
    /// Settings of the final of the simple candidates, and of that of the network.
    pub settings: [Settings; 2],
}

impl<'a> Finals<'a> {
    /// Chooses among the simple candidates that have raced and the networks. `untested` is the choice before any race.
    pub fn choose(
        &self,
        heat: &Race<'a>,
        simple: &[&'a Candidate],
        networks: &[&'a Candidate],
        untested: Choice,
    ) -> Choice {
        let goal = self.system.goal();
        let Some(winner) = Order::of(goal, &heat.racing).best() else { return untested };
        let choice = |base: &Contestant<'_>, candidates| Choice {
            name: base.name().into(),
            best_simple: base.name().into(),
            jobs: base.jobs(),
            candidates,
            ..untested.clone()
        };
        let after_heat = choice(winner, heat.rows(goal, simple, winner));
        if winner.loses_nothing(goal) {
            return Choice { why: Why::NothingLost, ..after_heat };
        }
        let finalists = self.finalists(heat, simple);
        let is_open = |race: &Race<'a>| !Order::of(goal, &race.racing).agrees_with_means();
        // One that nobody else is left beside needs no final.
        let last = (finalists.len() > 1).then(|| self.race(&finalists, self.settings[0], is_open)).flatten();
        let best = last.as_ref().and_then(|last| Order::of(goal, &last.racing).best().map(|base| (last, base)));
        let (base, chosen) = match best {
            Some((last, base)) => {
                let mut candidates = last.rows(goal, &finalists, base);
                after_heat.add_earlier_to(&mut candidates);
                (base, choice(base, candidates))
            }
            None if finalists.len() > 1 => return after_heat,
            None => (winner, after_heat),
        };
        if networks.is_empty() {
            return chosen;
        }
        let pair: Vec<&Candidate> = networks.iter().copied().chain([base.candidate]).collect();
        let is_ahead = |race: &Race<'a>, margin: Option<f64>| lead(goal, race, base.name(), margin).is_some();
        let is_open = |race: &Race<'a>| is_ahead(race, Some(EVIDENCE)) && !is_ahead(race, None);
        let Some(duel) = self.race(&pair, self.settings[1], is_open) else { return chosen };
        let Some(own) = duel.racing.iter().find(|one| one.name() == base.name()) else { return chosen };
        let followed = lead(goal, &duel, base.name(), None).unwrap_or(own);
        let mut candidates = duel.rows(goal, &pair, own);
        candidates.retain(|row| row.name != base.name());
        chosen.add_earlier_to(&mut candidates);
        Choice { name: followed.name().into(), jobs: followed.jobs(), candidates, ..chosen }
    }

    /// The first simple candidates by the evidence of the race, and the guard.
    fn finalists(&self, heat: &Race<'_>, simple: &[&'a Candidate]) -> Vec<&'a Candidate> {
        let order = Order::of(self.system.goal(), &heat.racing);
        let first = order.contestants.iter().take(FINALISTS).map(|one| one.name());
        let names: Vec<&str> = first.chain(self.guard.map(|guard| guard.candidate.name())).collect();
        simple.iter().copied().filter(|candidate| names.contains(&candidate.name())).collect()
    }

    /// Lets candidates run to the end, and again for longer if the result is open.
    fn race(
        &self,
        candidates: &[&'a Candidate],
        settings: Settings,
        is_open: impl Fn(&Race<'a>) -> bool,
    ) -> Option<Race<'a>> {
        let race = |settings: Settings| run(self.system, self.jobs, candidates, &settings, Stays::Everybody).ok();
        let first = race(settings)?;
        let longer = is_open(&first).then(|| race(settings.times(LONGER)?)).flatten();
        Some(longer.unwrap_or(first))
    }
}

/// Contestants in the order of the evidence, the best first: the first measure that is likely to differ decides, and
/// means where none is.
struct Order<'b, 'a> {
    goal: &'b Goal,
    contestants: Vec<&'b Contestant<'a>>,
    scores: Vec<Vec<Vec<f64>>>,
}

impl<'b, 'a> Order<'b, 'a> {
    fn of(goal: &'b Goal, racing: &'b [Contestant<'a>]) -> Order<'b, 'a> {
        let all: Vec<Vec<Vec<f64>>> = racing.iter().map(|one| one.scores(goal, usize::MAX)).collect();
        let places = in_order(goal, &all);
        Order {
            goal,
            contestants: places.iter().map(|place| &racing[*place]).collect(),
            scores: places.iter().map(|place| all[*place].clone()).collect(),
        }
    }

    /// The first contestant that no other one is ahead of with certainty.
    fn best(&self) -> Option<&'b Contestant<'a>> {
        let margin = certainty(self.goal, self.scores.len(), self.scores.first()?.len());
        let is_ahead = |one: &Vec<Vec<f64>>, other: &Vec<Vec<f64>>| leads(self.goal, one, other, margin);
        ranking::first_unbeaten(&self.scores, is_ahead).map(|place| self.contestants[place])
    }

    /// Whether the first contestant is also the first by the means.
    fn agrees_with_means(&self) -> bool {
        let means: Vec<Vec<f64>> = self.scores.iter().map(|scores| ranking::means(scores)).collect();
        means.iter().skip(1).all(|other| ranking::order(&means[0], other).is_le())
    }
}

/// Number of standard errors beyond which a difference is certain.
fn certainty(goal: &Goal, contestants: usize, blocks: usize) -> f64 {
    margin(blocks, CHANCE / (contestants.max(2) - 1) as f64 / goal.measures().len() as f64)
}

/// Whether the first of two is ahead by more than this many standard errors in the first measure that is likely to
/// differ. What is certain in a less important measure does not make up for what is likely in a more important one.
fn leads(goal: &Goal, one: &Scores, other: &Scores, margin: f64) -> bool {
    let likely = (0..goal.measures().len()).find_map(|place| {
        let (difference, error) = ranking::difference(one, other, place);
        let error = error?;
        // A loss in a single block is as large as its standard error.
        (difference.abs() > EVIDENCE * error + ranking::ROUNDING).then_some((difference, error))
    });
    likely.is_some_and(|(difference, error)| difference > margin * error)
}

/// Returns a network that is ahead of a simple candidate by this many standard errors; without a number, with
/// certainty.
fn lead<'b, 'a>(goal: &Goal, race: &'b Race<'a>, base: &str, margin: Option<f64>) -> Option<&'b Contestant<'a>> {
    let own = race.racing.iter().find(|one| one.name() == base)?;
    let margin = margin.unwrap_or_else(|| certainty(goal, race.racing.len(), own.blocks()));
    let is_ahead =
        |one: &&Contestant<'_>| leads(goal, &one.scores(goal, own.blocks()), &own.scores(goal, one.blocks()), margin);
    race.racing.iter().filter(|one| one.name() != base).find(is_ahead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::Aim;

    /// Scores of chains and jobs in time in eight blocks, of which some lose this much of the chains.
    fn scores(late_blocks: usize, loss: f64, met: f64) -> Vec<Vec<f64>> {
        let chains = |block: usize| if block < late_blocks { 1.0 - loss } else { 1.0 };
        (0..8).map(|block| vec![chains(block), met + 0.001 * (block % 3) as f64]).collect()
    }

    #[test]
    fn a_certain_lead_in_jobs_does_not_make_up_for_a_likely_loss_of_chains() {
        let goal = Goal::new(&[Aim::Chains, Aim::Met], &[]);
        let margin = certainty(&goal, 2, 8);
        let leads = |one: &Scores, other: &Scores| leads(&goal, one, other, margin);
        let (safe, once, often) = (scores(0, 0.0, 0.95), scores(1, 0.1, 0.99), scores(3, 0.1, 0.99));
        assert!(leads(&once, &safe), "one block is no evidence, so that jobs decide");
        assert!(!leads(&often, &safe) && !leads(&safe, &often), "chains speak for the one, without certainty");
        let always = scores(8, 0.1, 0.99);
        assert!(leads(&safe, &always) && !leads(&always, &safe));
    }
}
