//! The results on many sets as a JSON object.

use serde::Serialize;
use temponet_sim::labels;
use temponet_task::Goal;

use super::{Bulk, ByTest};

/// Report on many sets.
#[derive(Serialize)]
pub struct JsonBulk<'a> {
    seed: u64,
    sets: Vec<JsonSet<'a>>,
    schedulers: Vec<JsonAcceptance<'a>>,
}

#[derive(Serialize)]
struct JsonSet<'a> {
    set: &'a str,
    tasks: usize,
    cores: usize,
    load: f64,
    horizon_ns: u64,
    /// Seed of the first run.
    seed: u64,
    runs: u64,
    /// Measures of the goal, the most important first.
    goal: Vec<String>,
    /// Schedulers that are proved to meet every deadline.
    proved: &'a [String],
    /// Whether no scheduler can meet every deadline.
    impossible: bool,
    results: Vec<JsonResult<'a>>,
    /// Least and greatest share of deadlines that a clairvoyant schedule may meet.
    #[serde(skip_serializing_if = "Option::is_none")]
    optimum: Option<(f64, f64)>,
    /// Whether the greatest share is that of the optimum by the set's goal, rather than a bound on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    optimum_is_exact: Option<bool>,
}

#[derive(Serialize)]
struct JsonResult<'a> {
    scheduler: &'a str,
    released: u64,
    met: u64,
    /// Share of deadlines met, and the distance to the farther end of its 95% confidence interval.
    compliance: f64,
    ci95: Option<f64>,
    met_all: bool,
    /// Measures of the set's goal, and the place by it; equal ones share the mean of their places.
    goal: &'a [f64],
    place: f64,
    /// Who decides, where the scheduler follows another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    decider: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonAcceptance<'a> {
    scheduler: &'a str,
    /// Number of sets that it applies to, that it is proved on, and on which it met every deadline in simulation.
    sets: usize,
    proved: usize,
    met_all: usize,
    /// Place in the order of the table: by the mean place, and after those that ran on more sets.
    rank: usize,
    /// Mean over the sets of its place by the set's goal.
    place: f64,
    /// 95% confidence interval of the share of sets on which it meets every deadline in simulation.
    met_all_interval: (f64, f64),
    /// Mean over the sets of the share of deadlines met, and half the width of its 95% confidence interval.
    compliance: f64,
    ci95: Option<f64>,
}

impl<'a> JsonBulk<'a> {
    /// Returns the report.
    pub fn of(bulk: &'a Bulk) -> JsonBulk<'a> {
        let sets = bulk.plan.sets.iter().zip(&bulk.rows).enumerate().map(|(place, (of, row))| {
            let ran = bulk.plan.schedulers.iter().zip(&row.results);
            let results = ran.filter_map(|(scheduler, result)| {
                let result = result.as_ref()?;
                let (released, met, ci95) = (result.released, result.met, result.ci95);
                let (compliance, met_all) = (result.share(), result.misses_nothing);
                let decider = result.decider.as_deref();
                let (goal, place) = (result.goal.as_slice(), result.place);
                Some(JsonResult { scheduler, released, met, compliance, ci95, met_all, goal, place, decider })
            });
            let proved: &[String] = if let ByTest::Proved(proved) = &row.by_test { proved } else { &[] };
            JsonSet {
                set: &of.origin,
                tasks: of.set.task_count(),
                cores: of.set.cores(),
                load: of.load(),
                horizon_ns: of.horizon.0,
                seed: bulk.plan.seed_of(place),
                runs: of.runs,
                goal: measures(of.set.goal()),
                proved,
                impossible: row.by_test == ByTest::Impossible,
                results: results.collect(),
                optimum: row.optimum,
                optimum_is_exact: row.optimum.map(|_| row.optimum_is_exact),
            }
        });
        let ranked = bulk.ranked();
        let rank = |index: usize| ranked.iter().position(|(of, _)| *of == index).unwrap_or(ranked.len()) + 1;
        let acceptances = bulk.plan.schedulers.iter().zip(bulk.acceptances()).enumerate();
        let schedulers = acceptances.map(|(index, (scheduler, found))| JsonAcceptance {
            scheduler,
            rank: rank(index),
            place: found.place,
            sets: found.sets,
            proved: found.proved,
            met_all: found.met_all,
            met_all_interval: (found.interval.low, found.interval.high),
            compliance: found.compliance,
            ci95: found.ci95,
        });
        JsonBulk { seed: bulk.plan.seed, sets: sets.collect(), schedulers: schedulers.collect() }
    }
}

fn measures(goal: &Goal) -> Vec<String> {
    goal.measures().iter().map(|measure| labels::measure(goal, *measure)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_has_tests_beside_simulations() {
        let bulk = super::super::tests::small();
        let json = serde_json::to_value(JsonBulk::of(&bulk)).unwrap();
        assert_eq!(json["sets"][0]["set"], "fits.toml");
        assert_eq!(
            (&json["sets"][1]["impossible"], &json["sets"][1]["proved"]),
            (&true.into(), &serde_json::json!([]))
        );
        let edf = &json["schedulers"][1];
        assert_eq!((&edf["proved"], &edf["met_all"], &edf["sets"]), (&1.into(), &1.into(), &2.into()));
        assert_eq!(edf["met_all_interval"].as_array().unwrap().len(), 2);
    }
}
