//! What speaks against the best scheduler of a comparison: who pays for it, and who would be better in other respects.

use temponet_sim::labels;
use temponet_sim::statistics::paired_interval;
use temponet_task::Measure;
use temponet_wording::{capitalized, counted};

use crate::chain_table::ChainFigures;
use crate::comparison::ranking::{self, Edge, NEGLIGIBLE};
use crate::comparison::{Comparison, ComparisonRow, listed};
use crate::horizon::unseen;
use crate::stats::percent;

impl Comparison {
    /// Names what the runs say nothing about: tasks without a job that counts, and modes that never began.
    pub(super) fn unseen(&self) -> Option<String> {
        let notes = unseen(&self.plan.set, self.plan.horizon);
        let sentences: Vec<String> = notes.iter().map(|note| format!("{}.", capitalized(note))).collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    /// Names the tasks whose jobs the best scheduler never completes, or never in time.
    pub(super) fn starved(&self, best: &ComparisonRow) -> Option<String> {
        let tasks = self.plan.set.tasks().iter().zip(&best.metrics.tasks);
        let starved: Vec<_> = tasks.filter(|(_, figures)| figures.jobs.released > 0 && figures.jobs.met == 0).collect();
        let names: Vec<&str> = starved.iter().map(|(task, _)| task.name.as_str()).collect();
        let (verb, never) =
            (if names.len() == 1 { "finishes" } else { "finish" }, starved.iter().all(|(_, f)| f.completed == 0));
        let in_time = if never { "" } else { " in time" };
        let jobs = counted(starved.iter().map(|(_, figures)| figures.jobs.released).sum::<u64>(), "job");
        (!names.is_empty()).then(|| format!("But {} never {verb}{in_time} (0 of {jobs}).", listed(&names)))
    }

    /// Names the chains that the best scheduler never completes within their end-to-end deadline.
    pub(super) fn late_chains(&self, best: &ComparisonRow) -> Option<String> {
        let never = |figures: &ChainFigures<'_>| figures.metrics.on_time() == Some(0.0);
        let late: Vec<&str> =
            ChainFigures::of(&self.plan.set, best).filter(never).map(|late| late.chain.name.as_str()).collect();
        let (noun, verb) = if late.len() == 1 { ("Chain", "is") } else { ("Chains", "are") };
        (!late.is_empty()).then(|| format!("{noun} {} {verb} never in time.", listed(&late)))
    }

    /// Names the tasks whose (m,k) constraint the best scheduler violates.
    pub(super) fn violated(&self, best: &ComparisonRow) -> Option<String> {
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

    /// Names the task that loses most compared with EDF, beyond what chance explains over the runs. Starving tasks are not
    /// considered, because [`starved`](Self::starved) names them.
    pub(super) fn cost(&self, best: &ComparisonRow) -> Option<String> {
        let edf = self.row("edf").filter(|edf| edf.scheduler != best.scheduler)?;
        let share = |row: &ComparisonRow, task: usize| row.metrics.tasks[task].jobs.compliance();
        let lost = |task: &usize| share(edf, *task) - share(best, *task);
        let is_certain = |task: &usize| {
            let units = best.metrics.tasks[*task].jobs.released as f64;
            let (own, under_edf) = (ranking::values(&best.tasks, *task), ranking::values(&edf.tasks, *task));
            let (_, interval) = paired_interval(&own, &under_edf, Some(units), 1);
            interval.is_none_or(|interval| !interval.contains(0.0))
        };
        let served = (0..best.metrics.tasks.len()).filter(|task| best.metrics.tasks[*task].jobs.met > 0);
        let task =
            served.filter(|task| lost(task) > 0.0 && is_certain(task)).max_by(|a, b| lost(a).total_cmp(&lost(b)))?;
        let (own, under_edf) = (percent(share(best, task)), percent(share(edf, task)));
        let (name, best) = (&self.plan.set.tasks()[task].name, &best.scheduler);
        (own != under_edf)
            .then(|| format!("{best} costs {name} most: {own} of its jobs in time, {under_edf} under edf."))
    }

    /// Returns an alternative to the best scheduler, and what is lost with it. Goals are strictly ordered; if giving up
    /// a little in the measure that decided wins more in the last measure, the user may prefer that.
    pub(super) fn alternative_to(&self, best: &ComparisonRow) -> Option<(&ComparisonRow, Edge)> {
        let goal = &self.plan.goal;
        let last = *goal.measures().last()?;
        // The most important measure is never traded, nor are critical jobs, unless what is lost of them is negligible.
        let may_be_traded = |edge: &Edge| match edge.measure {
            measure if measure == last => false,
            Measure::Critical(_) => edge.most() <= NEGLIGIBLE,
            measure => measure != goal.first(),
        };
        let edge =
            |row: &ComparisonRow| self.lead_over(best, row).map(|claim| claim.edge).filter(|edge| may_be_traded(edge));
        // What may be lost is the farther end of its interval.
        let profit = |row: &ComparisonRow, edge: &Edge| gain(best, row, last) - edge.most();
        let fair = self.rows.iter().filter_map(|row| {
            let edge = edge(row)?;
            (profit(row, &edge) > 0.0).then_some((row, edge))
        });
        fair.max_by(|a, b| profit(a.0, &a.1).total_cmp(&profit(b.0, &b.1)))
    }

    /// Names an alternative to the best scheduler.
    pub(super) fn alternative(&self, best: &ComparisonRow) -> Option<String> {
        let goal = &self.plan.goal;
        let last = *goal.measures().last()?;
        let (row, edge) = self.alternative_to(best)?;
        Some(format!(
            "At the price of {} points of {}, {} has {:.2} points more of {}.",
            edge.points(),
            labels::whole(goal, edge.measure),
            row.scheduler,
            100.0 * gain(best, row, last),
            labels::whole(goal, last)
        ))
    }
}

/// How much more of a measure a scheduler has than the best one.
fn gain(best: &ComparisonRow, row: &ComparisonRow, measure: Measure) -> f64 {
    row.metrics.score(measure) - best.metrics.score(measure)
}
