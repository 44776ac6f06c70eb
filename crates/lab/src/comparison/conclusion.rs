//! The conclusion of a comparison in words: which scheduler is best, by how much, and at whose expense.

use temponet_sched::Kind;
use temponet_sim::labels;
use temponet_task::Measure;

use crate::chain_table::ChainFigures;
use crate::comparison::ranking;
use crate::comparison::{Comparison, ComparisonRow, listed};
use crate::roster::adds_shield;
use crate::stats::percent;

impl Comparison {
    /// Recommends a scheduler in a few sentences, with what speaks against it, and says what the planner could still
    /// gain if it ran.
    pub fn verdict(&self) -> String {
        let (planners, others): (Vec<ComparisonRow>, Vec<ComparisonRow>) =
            self.rows.iter().cloned().partition(|row| row.kind() == Kind::Planning);
        let (Some(planner), Some(best)) = (planners.first(), others.first()) else { return self.recommendation() };
        let edge = ranking::edge(&self.plan.goal, &planner.scores, &best.scores).filter(|edge| edge.is_clear());
        let still = match edge {
            Some(edge) => {
                let comparative = if edge.difference > 0.0 { "more" } else { "less" };
                let noun = labels::whole(&self.plan.goal, edge.measure);
                format!("has {} points of {noun} {comparative} than {}", edge.points(), best.scheduler)
            }
            None => format!("gains nothing over {} that these runs can tell", best.scheduler),
        };
        let recommendation = Comparison { rows: others.clone(), ..self.clone() }.recommendation();
        format!("{recommendation} {}, the online reference, which is too slow to use, {still}.", planner.scheduler)
    }

    fn recommendation(&self) -> String {
        let Some(best) = self.rows.first() else { return "No scheduler applies to this set.".into() };
        if best.metrics.jobs.released == 0 {
            return "No job's deadline lies within the horizon: make it longer.".into();
        }
        if best.misses_nothing() {
            return [Some(self.all_met()), self.learned_misses()].into_iter().flatten().collect::<Vec<_>>().join(" ");
        }
        let sentences = [
            Some(self.lead(best)),
            self.classical_lead(best),
            self.distance_from_tuned(),
            self.starved(best),
            self.late_chains(best),
            self.violated(best),
            self.cost(best),
            self.alternative(best),
        ];
        let mut text = sentences.into_iter().flatten().collect::<Vec<_>>().join(" ");
        if self.plan.runs == 1 && self.plan.set.is_random() {
            text += " One run of a random set tells little: ten runs give intervals.";
        }
        text
    }

    fn all_met(&self) -> String {
        let all_met: Vec<&ComparisonRow> = self.rows.iter().filter(|row| row.misses_nothing()).collect();
        let fewest = all_met[0];
        let is_alone = all_met.iter().filter(|row| row.metrics.preemptions == fewest.metrics.preemptions).count() == 1;
        let end_to_end = if self.plan.set.has_chain_deadlines() { ", also end to end" } else { "" };
        match all_met[..] {
            [only] if self.rows.len() == 1 => format!("{} meets every deadline{end_to_end}.", only.scheduler),
            [only] => format!("Only {} meets every deadline{end_to_end}.", only.scheduler),
            _ if is_alone => format!(
                "{} of {} schedulers meet every deadline{end_to_end}; {} does it with the fewest preemptions.",
                all_met.len(),
                self.rows.len(),
                fewest.scheduler
            ),
            _ => format!("{} of {} schedulers meet every deadline{end_to_end}.", all_met.len(), self.rows.len()),
        }
    }

    /// States what the learned scheduler misses, where others meet every deadline.
    fn learned_misses(&self) -> Option<String> {
        let learned = self.learned().filter(|learned| !learned.misses_nothing())?;
        let instances = learned.metrics.chain_instances();
        let late = instances.released - instances.met;
        let missed = [
            (learned.metrics.missed(), learned.metrics.jobs.released, "jobs"),
            (late, instances.released, "end-to-end deadlines"),
        ];
        let missed = missed.into_iter().filter(|(missed, ..)| *missed > 0);
        let missed: Vec<String> = missed.map(|(missed, of, what)| format!("{missed} of {of} {what}")).collect();
        Some(format!("But {} misses {}.", learned.scheduler, missed.join(" and ")))
    }

    /// The best scheduler of a kind, without an added shield.
    fn of_kind(&self, kind: Kind) -> Option<&ComparisonRow> {
        self.rows.iter().find(|row| row.kind() == kind && !adds_shield(&row.spec))
    }

    /// The learned scheduler behind its shield, or else without it.
    fn learned(&self) -> Option<&ComparisonRow> {
        self.of_kind(Kind::Learned).or_else(|| self.of_kind(Kind::Network))
    }

    /// Names the best schedulers with their figures.
    fn lead(&self, best: &ComparisonRow) -> String {
        let goal = &self.plan.goal;
        let level = self.level_with_best();
        let names = listed(&level.iter().map(|row| row.scheduler.as_str()).collect::<Vec<_>>());
        let is_tie = level.iter().all(|row| ranking::edge(goal, &best.scores, &row.scores).is_none());
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

    /// States the lead of the best scheduler over the best classical one and over EDF, where it exceeds its confidence
    /// interval.
    fn against(&self, best: &ComparisonRow) -> String {
        let goal = &self.plan.goal;
        let classical = self.rows.iter().find(|row| row.kind().is_classical());
        let classical = classical.filter(|row| row.scheduler != "edf" && !best.kind().is_classical());
        let clause = |row: &ComparisonRow, role: &str| {
            let edge = self.lead_over(best, row)?;
            Some(format!(
                "{} points of {} more than {}{role}",
                edge.points(),
                labels::whole(goal, edge.measure),
                row.scheduler
            ))
        };
        let clauses = [
            classical.and_then(|row| clause(row, ", the best classical scheduler")),
            self.row("edf").and_then(|row| clause(row, "")),
        ];
        let clauses: Vec<String> = clauses.into_iter().flatten().collect();
        if clauses.is_empty() { String::new() } else { format!(", {}", clauses.join(", and ")) }
    }

    /// States by how much the learned scheduler is behind, if another scheduler clearly beats it.
    fn classical_lead(&self, best: &ComparisonRow) -> Option<String> {
        let learned = self.learned()?;
        if best.kind().is_learned() {
            return None;
        }
        let goal = &self.plan.goal;
        let edge = self.lead_over(best, learned)?;
        Some(format!(
            "{} is {} points of {} behind.",
            learned.scheduler,
            edge.points(),
            labels::whole(goal, edge.measure)
        ))
    }

    /// States the distance of the learned scheduler from the tuned portfolio of simple schedulers, where these runs can
    /// tell them apart.
    fn distance_from_tuned(&self) -> Option<String> {
        // Of an untrained network nothing is concluded.
        let learned = self.of_kind(Kind::Learned).filter(|learned| learned.scheduler == learned.spec)?;
        let tuned = self.of_kind(Kind::Tuned)?;
        let edge = ranking::edge(&self.plan.goal, &learned.scores, &tuned.scores).filter(|edge| edge.is_clear())?;
        let points = format!("{} points of {}", edge.points(), labels::whole(&self.plan.goal, edge.measure));
        let (learned, tuned) = (&learned.scheduler, &tuned.scheduler);
        Some(match edge.difference > 0.0 {
            true => format!("{learned} has {points} more than {tuned}, the simple scheduler that tuning chose."),
            false => format!("{tuned}, the simple scheduler that tuning chose, has {points} more than {learned}."),
        })
    }

    /// Names the tasks whose jobs the best scheduler never completes, or never in time.
    fn starved(&self, best: &ComparisonRow) -> Option<String> {
        let tasks = self.plan.set.tasks().iter().zip(&best.metrics.tasks);
        let starved: Vec<_> = tasks.filter(|(_, figures)| figures.jobs.released > 0 && figures.jobs.met == 0).collect();
        let names: Vec<&str> = starved.iter().map(|(task, _)| task.name.as_str()).collect();
        let (verb, never) =
            (if names.len() == 1 { "finishes" } else { "finish" }, starved.iter().all(|(_, f)| f.completed == 0));
        let in_time = if never { "" } else { " in time" };
        (!names.is_empty()).then(|| format!("But {} never {verb}{in_time}.", listed(&names)))
    }

    /// Names the chains that the best scheduler never completes within their end-to-end deadline.
    fn late_chains(&self, best: &ComparisonRow) -> Option<String> {
        let never = |figures: &ChainFigures<'_>| figures.metrics.on_time() == Some(0.0);
        let late: Vec<&str> =
            ChainFigures::of(&self.plan.set, best).filter(never).map(|late| late.chain.name.as_str()).collect();
        let (noun, verb) = if late.len() == 1 { ("Chain", "is") } else { ("Chains", "are") };
        (!late.is_empty()).then(|| format!("{noun} {} {verb} never in time.", listed(&late)))
    }

    /// Names the tasks whose (m,k) constraint the best scheduler violates.
    fn violated(&self, best: &ComparisonRow) -> Option<String> {
        let tasks = self.plan.set.tasks().iter().zip(&best.metrics.tasks);
        let violated = tasks.filter(|(_, figures)| figures.windows.violated > 0).map(|(task, figures)| {
            let (m, k) = task.mk.unwrap_or_default();
            let windows = figures.windows;
            format!("{} ({m},{k}) in {} of {} windows", task.name, windows.violated, windows.all)
        });
        let violated: Vec<String> = violated.collect();
        let names: Vec<&str> = violated.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| format!("(m,k) is violated: {}.", listed(&names)))
    }

    /// Names the task that loses most compared with EDF. Starving tasks are not considered, because
    /// [`starved`](Self::starved) names them.
    fn cost(&self, best: &ComparisonRow) -> Option<String> {
        let edf = self.row("edf").filter(|edf| edf.scheduler != best.scheduler)?;
        let tasks = self.plan.set.tasks().iter().zip(best.metrics.tasks.iter().zip(&edf.metrics.tasks));
        let shares = tasks.filter(|(_, (own, _))| own.jobs.met > 0);
        let losses = shares.map(|(task, (own, under_edf))| (task, own.jobs.compliance(), under_edf.jobs.compliance()));
        let (task, own, under_edf) = losses.max_by(|a, b| (a.2 - a.1).total_cmp(&(b.2 - b.1)))?;
        let visible = percent(own) != percent(under_edf) && own < under_edf;
        visible.then(|| {
            let (own, under_edf) = (percent(own), percent(under_edf));
            let best = &best.scheduler;
            format!("{best} costs {} most: {own} of its jobs in time, {under_edf} under edf.", task.name)
        })
    }

    /// Returns the difference between the best row and another, if the best one is clearly ahead.
    fn lead_over(&self, best: &ComparisonRow, row: &ComparisonRow) -> Option<ranking::Edge> {
        let edge = ranking::edge(&self.plan.goal, &best.scores, &row.scores)?;
        (edge.is_clear() && edge.difference > 0.0).then_some(edge)
    }

    /// Names an alternative to the best scheduler. Goals are strictly ordered; if giving up a little in the measure
    /// that decided wins more in the last measure, the user may prefer that.
    fn alternative(&self, best: &ComparisonRow) -> Option<String> {
        let goal = &self.plan.goal;
        let last = *goal.measures().last()?;
        let gain = |row: &ComparisonRow| row.metrics.score(last) - best.metrics.score(last);
        // The most important measure is never traded.
        let edge = |row: &ComparisonRow| {
            self.lead_over(best, row).filter(|edge| ![goal.first(), last].contains(&edge.measure))
        };
        let profit =
            |row: &ComparisonRow| edge(row).map(|edge| gain(row) - edge.difference).filter(|profit| *profit > 0.0);
        let fair = self.rows.iter().filter_map(|row| Some((row, profit(row)?)));
        let (row, _) = fair.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let edge = edge(row)?;
        Some(format!(
            "If {} points of {} may be lost, {} has {:.2} points more of {}.",
            edge.points(),
            labels::whole(goal, edge.measure),
            row.scheduler,
            100.0 * gain(row),
            labels::whole(goal, last)
        ))
    }
}

#[cfg(test)]
mod tests {
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
        assert!(verdict.contains("But long never finishes."), "{verdict}");
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
        assert_eq!(tight.verdict(), "Only srpt meets every deadline, also end to end.");
        let loose = outcome(with_chain(10), &["edf", "srpt"], &[]).verdict();
        assert!(loose.starts_with("2 of 2 schedulers meet every deadline, also end to end"), "{loose}");
    }
}
