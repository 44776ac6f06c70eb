//! The advice on a comparison in words: which scheduler is best, by how much, at whose expense, and what that rests on.

use temponet_sched::shield::Role;
use temponet_sched::{Kind, proofs};
use temponet_sim::labels;
use temponet_task::{ExecutionModel, Measure, TaskSet};
use temponet_wording::grouped;

use super::{Advice, Claim, Evidence, Premise};
use crate::comparison::{Comparison, ComparisonRow, listed, named_of, ranking};
use crate::guarantee::Guaranteed;
use crate::roster::{adds_shield, is_shielded};
use crate::stats::percent;

impl Comparison {
    /// Recommends a scheduler, with what speaks against it and what it rests on, and says what the planner could still
    /// gain if it ran.
    pub fn advice(&self) -> Advice {
        let evidence = self.evidence();
        let best = self.usable().next();
        let level = best.map_or(Vec::new(), |best| self.level_with(best));
        let level_with = level.iter().map(|row| row.scheduler.clone());
        Advice {
            level_with: level_with.filter(|name| best.is_none_or(|best| best.scheduler != *name)).collect(),
            sentences: self.sentences(best, &level, &evidence),
            best: best.map(|best| best.scheduler.clone()),
            decider: best.and_then(|best| best.decider.clone()),
            warning: self.premise.as_ref().and_then(Premise::noise),
            evidence,
        }
    }

    /// Returns the advice as one text.
    pub fn verdict(&self) -> String {
        self.advice().verdict()
    }

    /// What the comparison rests on.
    fn evidence(&self) -> Evidence {
        let jobs = self.rows.first().map_or(0, |row| row.metrics.jobs.released);
        match self.premise {
            None => Evidence::simulated(&self.plan.set, self.plan.runs, jobs),
            Some(_) => Evidence::measured(&self.plan.set, self.plan.runs, jobs),
        }
    }

    /// Rows of schedulers that can be used, the recommended one first.
    fn usable(&self) -> impl Iterator<Item = &ComparisonRow> {
        self.rows.iter().filter(|row| row.is_usable())
    }

    /// Returns the rows of the schedulers that the advice names: whoever reads it looks for them in the table.
    pub fn named(&self) -> Vec<&ComparisonRow> {
        let Some(best) = self.usable().next() else { return Vec::new() };
        let level = self.level_with(best);
        if best.misses_nothing() {
            return level.into_iter().filter(|row| row.scheduler == best.scheduler || !row.misses_nothing()).collect();
        }
        let level = &level[..named_of(level.len())];
        let rivals = self.rivals_of(best).map(|(row, _)| row);
        let tuned = self.distance_from_tuned(best).and_then(|_| self.of_kind(Kind::Tuned));
        let alternative = self.alternative_to(best).map(|(row, _)| row);
        level.iter().copied().chain(rivals).chain(tuned).chain(alternative).collect()
    }

    /// Returns the schedulers that the best one is not ahead of beyond chance, including the best one. One of them may
    /// be ahead of it if it is the only rival, but not beyond what chance explains over all rivals.
    fn level_with(&self, best: &ComparisonRow) -> Vec<&ComparisonRow> {
        self.usable().filter(|row| self.lead_over(best, row).is_none()).collect()
    }

    fn claim(&self, one: &ComparisonRow, other: &ComparisonRow) -> Option<Claim> {
        Claim::of(&self.plan.goal, one, other)
    }

    fn sentences(&self, best: Option<&ComparisonRow>, level: &[&ComparisonRow], evidence: &Evidence) -> Vec<String> {
        let Some(best) = best else { return vec!["No scheduler applies to this set.".into()] };
        if best.metrics.jobs.released == 0 {
            return vec!["No job's deadline lies within the horizon: make it longer.".into()];
        }
        let guarantee = self.shield.as_ref().map(|role| role.sentence("the network"));
        let premise = self.premise.as_ref().map(|premise| premise.sentences(guarantee.as_deref()));
        let mut sentences = premise.unwrap_or_default();
        sentences.extend(if best.misses_nothing() {
            self.all_met(level, evidence)
        } else {
            let found = [
                Some(self.lead(best, level)),
                self.who_decides(best, level),
                self.behind(best),
                self.distance_from_tuned(best),
                self.unseen(),
                self.starved(best),
                self.late_chains(best),
                self.violated(best),
                self.cost(best),
                self.alternative(best),
            ];
            let too_few = (self.plan.runs == 1 && evidence.is_random)
                .then(|| "One run of a random set tells little: ten runs give intervals.".to_string());
            found.into_iter().flatten().chain(too_few).chain([evidence.sentence()]).collect()
        });
        sentences.extend(self.online_reference(best));
        sentences
    }

    /// States that schedulers met every deadline, what such runs leave open, and who came close.
    fn all_met(&self, level: &[&ComparisonRow], evidence: &Evidence) -> Vec<String> {
        let all_met: Vec<&ComparisonRow> = self.usable().filter(|row| row.misses_nothing()).collect();
        let Some(fewest) = all_met.first() else { return Vec::new() };
        let has_as_few = |row: &&&ComparisonRow| row.metrics.preemptions <= fewest.metrics.preemptions;
        let is_alone = all_met.iter().filter(has_as_few).count() == 1;
        let end_to_end = if self.plan.set.has_chain_deadlines() { ", also end to end," } else { "" };
        let (count, of, runs) = (all_met.len(), self.usable().count(), evidence.in_runs());
        let name = &fewest.scheduler;
        let met = match all_met[..] {
            [_] if of == 1 => format!("{name} meets every deadline{end_to_end} {runs}."),
            [_] => format!("Only {name} meets every deadline{end_to_end} {runs}."),
            _ => {
                let preemptions =
                    if is_alone { format!("; {name} does it with the fewest preemptions") } else { String::new() };
                format!("{count} of {of} schedulers meet every deadline{end_to_end} {runs}{preemptions}.")
            }
        };
        let proved = self.proved();
        let is_proved = |row: &&&ComparisonRow| proved.iter().any(|proved| proved.spec == row.spec);
        let proved: Vec<&str> = all_met.iter().filter(is_proved).map(|row| row.scheduler.as_str()).collect();
        let is_proved_for_all = proved.len() == count;
        let names: Vec<&str> = all_met.iter().map(|row| row.scheduler.as_str()).collect();
        let proved = match proved.is_empty() {
            false => Some(format!("It is proved for {}.", listed(&proved))),
            true => (count > 1).then(|| format!("They are {}; none of them is proved.", listed(&names))),
        };
        // Those that missed a little are not told from those that missed nothing.
        let close = level.iter().filter(|row| !row.misses_nothing());
        let close: Vec<String> = close.map(|row| format!("{} ({} missed)", row.scheduler, self.missed(row))).collect();
        let close = (!close.is_empty()).then(|| {
            let names: Vec<&str> = close.iter().map(String::as_str).collect();
            format!("These runs do not tell {} from {}.", if count == 1 { "it" } else { "them" }, listed(&names))
        });
        let open = if is_proved_for_all { None } else { evidence.left_open() };
        // Of several with as few preemptions, none is named.
        let named = if is_alone { Some(*fewest) } else { self.of_kind(Kind::Learned) };
        let decider = self.who_decides(named.unwrap_or(fewest), level);
        let found = [Some(met), self.unseen(), proved, open, close, decider, self.learned_misses(level)];
        found.into_iter().flatten().collect()
    }

    /// Returns the schedulers that are proved to meet every deadline of the set, by a test or because the shield
    /// guarantees it. Of a set that can be overloaded nothing is proved, and no proof is about a real machine.
    pub fn proved(&self) -> Vec<&ComparisonRow> {
        if self.premise.is_some() {
            return Vec::new();
        }
        let has_proofs = self.evidence().overloaded_at_wcet != Some(true);
        let proofs = if has_proofs { proofs(&self.plan.set) } else { Vec::new() };
        let is_guaranteed = self.shield.as_ref().is_some_and(|role| guarantees_all(&self.plan.set, role));
        let is_proved = |row: &&ComparisonRow| {
            is_guaranteed && is_shielded(&row.spec) || proofs.iter().any(|proof| proof.scheduler == row.scheduler)
        };
        self.rows.iter().filter(is_proved).collect()
    }

    /// Counts what a scheduler missed: "12 of 99 935 jobs".
    fn missed(&self, row: &ComparisonRow) -> String {
        let instances = row.metrics.chain_instances();
        let missed = [
            (row.metrics.missed(), row.metrics.jobs.released, "jobs"),
            (instances.released - instances.met, instances.released, "end-to-end deadlines"),
        ];
        let missed = missed.into_iter().filter(|(missed, ..)| *missed > 0);
        missed
            .map(|(missed, of, what)| format!("{} of {} {what}", grouped(missed), grouped(of)))
            .collect::<Vec<_>>()
            .join(" and ")
    }

    /// States what the learned scheduler misses, where others meet every deadline.
    fn learned_misses(&self, level: &[&ComparisonRow]) -> Option<String> {
        let learned = self.learned().filter(|learned| !learned.misses_nothing())?;
        // What is not told apart has been named.
        let is_named = level.iter().any(|row| row.scheduler == learned.scheduler);
        (!is_named).then(|| format!("But {} misses {}.", learned.scheduler, self.missed(learned)))
    }

    /// States what the planner has beyond the best scheduler, if it ran.
    fn online_reference(&self, best: &ComparisonRow) -> Option<String> {
        let planner = self.of_kind(Kind::Planning)?;
        let still = match self.claim(planner, best).filter(|claim| claim.edge.is_clear()) {
            Some(claim) => {
                let comparative = if claim.edge.difference > 0.0 { "more" } else { "less" };
                format!("has {} {comparative} than {}", claim.points(&self.plan.goal), best.scheduler)
            }
            None => format!("gains nothing over {} that these runs can tell", best.scheduler),
        };
        Some(format!("{}, the online reference, which is too slow to use, {still}.", planner.scheduler))
    }

    /// The best scheduler of a kind, without an added shield.
    fn of_kind(&self, kind: Kind) -> Option<&ComparisonRow> {
        self.rows.iter().find(|row| row.kind() == kind && !adds_shield(&row.spec))
    }

    /// The learned scheduler behind its shield, or else without it.
    fn learned(&self) -> Option<&ComparisonRow> {
        self.of_kind(Kind::Learned).or_else(|| self.of_kind(Kind::Network))
    }

    /// Names who decides in the learned scheduler, and why, also where another scheduler is best; and who does in the
    /// best one, if that is somebody else.
    fn who_decides(&self, best: &ComparisonRow, level: &[&ComparisonRow]) -> Option<String> {
        let learned = self.of_kind(Kind::Learned).filter(|row| row.decider.is_some());
        let name = |row: &ComparisonRow| row.decider.as_ref().map(|decider| decider.name.clone());
        let best_too = Some(best).filter(|best| learned.is_none_or(|learned| name(learned) != name(best)));
        let sentence = |row: &ComparisonRow| {
            let decider = row.decider.as_ref()?;
            Some(format!("In {}, {}{}.", row.scheduler, decider.sentence, self.among_others(best, level, row)))
        };
        let sentences: Vec<String> = best_too.into_iter().chain(learned).filter_map(sentence).collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    /// Says that these runs cannot tell a scheduler from the best one, where it is one of many whose names are left
    /// out; empty otherwise.
    fn among_others(&self, best: &ComparisonRow, level: &[&ComparisonRow], row: &ComparisonRow) -> String {
        let others: Vec<&str> =
            level.iter().map(|row| row.scheduler.as_str()).filter(|name| *name != best.scheduler).collect();
        let is_left_out = others[named_of(others.len())..].contains(&row.scheduler.as_str());
        match is_left_out && !best.misses_nothing() {
            true => format!("; these runs cannot tell {} from {}", row.scheduler, best.scheduler),
            false => String::new(),
        }
    }

    /// Names the best schedulers with their figures.
    fn lead(&self, best: &ComparisonRow, level: &[&ComparisonRow]) -> String {
        let goal = &self.plan.goal;
        let names = listed(&level.iter().map(|row| row.scheduler.as_str()).collect::<Vec<_>>());
        let is_tie = level.iter().all(|row| self.claim(best, row).is_none());
        let others = level.iter().map(|row| row.scheduler.as_str()).filter(|name| *name != best.scheduler);
        let undecided = format!("these runs cannot tell it from {}", listed(&others.collect::<Vec<_>>()));
        let first = &best.scheduler;
        let against = self.against(best);
        if goal.is_plain() {
            let figure = percent(best.metrics.jobs.compliance());
            let share = self.share_of_optimum(best);
            return match level.len() {
                1 if self.rows.len() == 1 => format!("{names} meets {figure} of the deadlines{share}."),
                1 => format!("{names} meets the most deadlines: {figure}{share}{against}."),
                _ if is_tie => format!("{names} tie for the most deadlines met: {figure}{share}{against}."),
                _ => format!("{first} meets the most deadlines on average, {figure}{share}{against}; {undecided}."),
            };
        }
        let figures = self.figures(best);
        match level.len() {
            1 => format!("{names} serves the goal best: {figures}{against}."),
            _ if is_tie => format!("{names} tie: {figures}{against}."),
            _ if self.before(best).is_some() => {
                format!("{first} serves the goal best as far as these runs can tell: {figures}{against}; {undecided}.")
            }
            _ => format!("{first} serves the goal best on average: {figures}{against}; {undecided}."),
        }
    }

    /// Formats all measures of the goal, as in "100.00% of the critical jobs and 94.10% of the value in time".
    fn figures(&self, row: &ComparisonRow) -> String {
        let goal = &self.plan.goal;
        let figure = |measure: &Measure| {
            Some(format!("{} of {}", percent(row.metrics.measured(*measure)?), labels::whole(goal, *measure)))
        };
        let figures: Vec<String> = goal.measures().iter().filter_map(figure).collect();
        format!("{} in time", listed(&figures.iter().map(String::as_str).collect::<Vec<_>>()))
    }

    fn share_of_optimum(&self, best: &ComparisonRow) -> String {
        let share = self.of_optimum(best).zip(self.clairvoyant.as_ref()).map(|(share, optimum)| {
            let at_least = if optimum.met.is_exact() { "" } else { "at least " };
            format!(", {at_least}{} of the clairvoyant optimum", percent(share))
        });
        share.unwrap_or_default()
    }

    /// Returns the first scheduler by its means, if that is not the best one.
    fn before(&self, best: &ComparisonRow) -> Option<&ComparisonRow> {
        let means = ranking::means(&best.scores);
        self.usable().find(|row| ranking::order(&ranking::means(&row.scores), &means).is_lt())
    }

    /// Returns the schedulers that the lead of the best one is stated over, with what they are: the best classical one,
    /// the first one by its means, which is before it in a more important measure, and EDF. Over others, it is not
    /// ahead.
    fn rivals_of<'a>(&'a self, best: &'a ComparisonRow) -> impl Iterator<Item = (&'a ComparisonRow, &'static str)> {
        let is_edf = |row: &ComparisonRow| row.scheduler == "edf";
        let classical = self.rows.iter().find(|row| row.kind().is_classical());
        let classical = classical.filter(|row| !is_edf(row) && !best.kind().is_classical());
        let is_told = |row: &ComparisonRow| {
            is_edf(row) || classical.is_some_and(|classical| classical.scheduler == row.scheduler)
        };
        let before = self.before(best).filter(|row| !is_told(row));
        let rivals = [
            classical.map(|row| (row, ", the best classical scheduler")),
            before.map(|row| (row, "")),
            self.row("edf").map(|row| (row, "")),
        ];
        rivals.into_iter().flatten().filter(|(row, _)| self.lead_over(best, row).is_some())
    }

    /// States the lead of the best scheduler over its rivals, where it is more than chance explains.
    fn against(&self, best: &ComparisonRow) -> String {
        let clauses: Vec<String> =
            self.rivals_of(best).filter_map(|(row, role)| self.lead_in_words(best, row, role)).collect();
        if clauses.is_empty() { String::new() } else { format!(", {}", clauses.join(", and ")) }
    }

    /// States the lead of one scheduler over another, as in "2.31 ± 0.20 points of the jobs more than edf", with the
    /// more important measures that speak against it; none if it is not ahead.
    fn lead_in_words(&self, one: &ComparisonRow, other: &ComparisonRow, role: &str) -> Option<String> {
        let goal = &self.plan.goal;
        let claim = self.claim(one, other).filter(Claim::is_lead)?;
        let reservation =
            claim.reservation(goal, |edge| (one.metrics.score(edge.measure), other.metrics.score(edge.measure)));
        Some(format!("{} more than {}{role}{reservation}", claim.points(goal), other.scheduler))
    }

    /// States by how much the learned scheduler is behind, if another scheduler clearly beats it, be it the network
    /// without its shield.
    fn behind(&self, best: &ComparisonRow) -> Option<String> {
        let learned = self.learned().filter(|learned| learned.spec != best.spec)?;
        let followed = |row: &ComparisonRow| row.decider.as_ref().map(|decider| decider.name.clone());
        let follows_same = followed(best).is_some() && followed(best) == followed(learned);
        let role = if follows_same { ", which follows the same scheduler behind a shield" } else { "" };
        Some(format!("{} has {}.", best.scheduler, self.lead_in_words(best, learned, role)?))
    }

    /// States the distance of the learned scheduler from the tuned portfolio of simple schedulers, where these runs can
    /// tell them apart.
    fn distance_from_tuned(&self, best: &ComparisonRow) -> Option<String> {
        // Of an untrained network nothing is concluded.
        let learned = self.of_kind(Kind::Learned).filter(|learned| learned.scheduler == learned.spec)?;
        // By how much the best one is ahead has been said.
        let tuned = self.of_kind(Kind::Tuned).filter(|tuned| tuned.scheduler != best.scheduler)?;
        let followed = |row: &ComparisonRow| row.decider.as_ref().map(|decider| decider.name.clone());
        let role = match followed(learned) == followed(tuned) {
            true => ", which follows the same scheduler without a shield",
            false => ", the simple scheduler that tuning chose",
        };
        let ahead = self.lead_in_words(learned, tuned, role).map(|lead| format!("{} has {lead}.", learned.scheduler));
        ahead.or_else(|| {
            let lead = self.lead_in_words(tuned, learned, "")?;
            Some(format!("{}{role}, has {lead}.", tuned.scheduler))
        })
    }

    /// Returns what tells the best row from another, if the best one is clearly ahead.
    pub(super) fn lead_over(&self, best: &ComparisonRow, row: &ComparisonRow) -> Option<Claim> {
        self.claim(best, row).filter(Claim::is_lead)
    }
}

/// Whether the shield guarantees every deadline of a set, in each of its modes and whatever its jobs take.
fn guarantees_all(set: &TaskSet, role: &Role) -> bool {
    let overruns = set.tasks().iter().any(|task| matches!(task.execution, ExecutionModel::Overrun { .. }));
    let is_for_all = match role.guarantee() {
        Some(guarantee) => guarantee.is_for_all() && (guarantee.covers_overruns() || !overruns),
        None => matches!(role, Role::StandIn(_)) && !overruns,
    };
    is_for_all && Guaranteed::with(set, role.clone()).exceptions_by_modes().is_empty()
}

#[cfg(test)]
mod tests {
    use temponet_sim::Count;
    use temponet_task::{Aim, Chain, Communication, Task, TaskId, TaskSet, Time};

    use crate::comparison::{Comparison, ComparisonPlan, compare};
    use crate::progress::Progress;
    use crate::roster::Roster;

    /// One long task that fills most of the core, beside three short ones.
    fn overloaded() -> TaskSet {
        let ms = Time::from_ms;
        let mut tasks = vec![Task::periodic("long", ms(100), ms(60))];
        tasks.extend(["a", "b", "c"].map(|name| Task::periodic(name, ms(100), ms(30))));
        TaskSet::new("s", tasks, 1)
    }

    fn outcome(set: TaskSet, schedulers: &[&str], first: &[Aim]) -> Comparison {
        let horizon = Time::from_secs(2);
        let plan = ComparisonPlan {
            goal: set.goal_led_by(first),
            set,
            horizon,
            seed: 1,
            runs: 1,
            schedulers: schedulers.iter().map(|name| name.to_string()).collect(),
            roster: Roster::classical(),
            latency: false,
            charge_latency: false,
            record_until: Time::ZERO,
            oracle: Some(1.0),
        };
        compare(plan, &Progress::new(1, horizon)).unwrap()
    }

    #[test]
    fn a_scheduler_with_half_of_the_value_is_not_recommended() {
        let mut set = overloaded();
        set.system.tasks_mut()[0].value = 20.0;
        let comparison = outcome(set.clone(), &["srpt", "dasa"], &[]);
        assert_eq!(comparison.rows[0].scheduler, "dasa", "srpt has more jobs and a seventh of the value");
        assert!(comparison.verdict().starts_with("dasa serves the goal best"), "{}", comparison.verdict());
        let by_number = outcome(set, &["srpt", "dasa"], &[Aim::Met]);
        assert_eq!(by_number.rows[0].scheduler, "srpt");
    }

    /// What a task loses against EDF is named if it is no chance.
    #[test]
    fn a_cost_that_may_be_chance_is_not_named() {
        let mut comparison = outcome(overloaded(), &["edf", "srpt"], &[]);
        let (best, edf) = (comparison.rows[0].clone(), comparison.row("edf").unwrap().clone());
        assert_eq!(best.scheduler, "srpt");
        let mut runs = |task: usize, own: [f64; 4], under_edf: [f64; 4]| {
            let shares = |of: [f64; 4]| of.map(|share| (0..4).map(|at| if at == task { share } else { 1.0 }).collect());
            for (row, shares) in comparison.rows.iter_mut().zip([shares(own), shares(under_edf)]) {
                (row.tasks, row.metrics) = (shares.to_vec(), best.metrics.clone());
                row.metrics.tasks.iter_mut().for_each(|of| of.jobs = Count { released: 1_000, met: 1_000 });
            }
            let met = |shares: [f64; 4]| (250.0 * shares.iter().sum::<f64>()) as u64;
            comparison.rows[0].metrics.tasks[task].jobs.met = met(own);
            comparison.rows[1].metrics.tasks[task].jobs.met = met(under_edf);
            comparison.cost(&comparison.rows[0])
        };
        assert_eq!(edf.scheduler, "edf");
        let certain = runs(1, [0.5, 0.52, 0.51, 0.49], [0.9, 0.9, 0.91, 0.9]).unwrap();
        assert!(certain.starts_with("srpt costs a most: 50.50% of its jobs in time"), "{certain}");
        assert_eq!(
            runs(1, [0.5, 0.9, 0.7, 0.6], [0.7, 0.6, 0.8, 0.7]),
            None,
            "runs differ by more than the task loses"
        );
        assert_eq!(runs(1, [1.0, 1.0, 0.996, 1.0], [1.0; 4]), None, "one job");
    }

    #[test]
    fn critical_jobs_outrank_value_and_number_level_by_level() {
        let mut set = overloaded();
        (
            set.system.tasks_mut()[0].criticality,
            set.system.tasks_mut()[1].value,
            set.system.tasks_mut()[2].criticality,
        ) = (2, 100.0, 1);
        let comparison = outcome(set, &["srpt", "dasa", "muf"], &[]);
        assert_eq!(comparison.rows[0].scheduler, "muf");
        assert_eq!(comparison.rows[0].scores[0][..2], [1.0, 1.0], "both levels");
    }

    #[test]
    fn a_verdict_names_starvation_and_violated_constraints() {
        let mut set = overloaded();
        set.system.tasks_mut()[0].mk = Some((1, 3));
        let verdict = outcome(set, &["srpt"], &[Aim::Met]).verdict();
        assert!(verdict.contains("But long never finishes (0 of 20 jobs)."), "{verdict}");
        assert!(verdict.contains("(m,k) is violated: long (1,3) in 18 of 18 windows"), "{verdict}");
    }

    /// A source and its follower, beside a third task, with an end-to-end deadline.
    fn with_chain(deadline: u64) -> TaskSet {
        let ms = Time::from_ms;
        let mut tasks = vec![Task::periodic("a", ms(10), ms(3)), Task::periodic("b", ms(10), ms(3))];
        tasks.push(Task::periodic("c", ms(10), ms(4)));
        (tasks[1].after, tasks[1].deadline) = (vec![TaskId(0)], ms(20));
        let mut set = TaskSet::new("s", tasks, 1);
        set.system.follow_sources().unwrap();
        set.system.set_chains(vec![Chain {
            name: "k".into(),
            tasks: vec![TaskId(0), TaskId(1)],
            deadline: Some(ms(deadline)),
            communication: Communication::default(),
        }]);
        set
    }

    #[test]
    fn late_chains_are_deadlines_that_are_not_met() {
        let hopeless = outcome(with_chain(5), &["edf", "edf-chain"], &[]).verdict();
        assert!(!hopeless.contains("every deadline"), "{hopeless}");
        assert!(hopeless.contains("0.00% of the chains' instances and 100.00% of the jobs"), "{hopeless}");
        assert!(hopeless.contains("Chain k is never in time."), "{hopeless}");
        // EDF runs the third task before the follower, whose own deadline is later.
        let tight = outcome(with_chain(6), &["edf", "srpt"], &[]);
        assert!(tight.rows.iter().all(|row| row.metrics.missed() == 0));
        assert_eq!(tight.verdict(), "Only srpt meets every deadline, also end to end, in this run (599 jobs).");
        let loose = outcome(with_chain(10), &["edf", "srpt"], &[]).verdict();
        assert!(loose.starts_with("2 of 2 schedulers meet every deadline, also end to end"), "{loose}");
    }
}
