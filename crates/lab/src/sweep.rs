//! Schedulers over many random sets of rising load: which share of the sets each of them meets completely (the acceptance ratio that the
//! field publishes), and which share of all deadlines.

use temponet_sched::build;
use temponet_sim::generate::{GenerateError, Method, Periods, Spec, generate};
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Scheduler, TaskSet, Time};

use crate::comparison::CompareError;
use crate::horizon::expected_jobs;
use crate::plot::{Panel, svg};

/// What to run.
#[derive(Clone, Debug)]
pub struct SweepPlan {
    /// Utilisations per core, ascending.
    pub loads: Vec<f64>,
    /// Number of cores.
    pub cores: usize,
    /// Tasks per set.
    pub tasks: usize,
    /// Sets per load.
    pub sets: u64,
    /// Jobs per set, about.
    pub jobs: u64,
    /// Names with options.
    pub schedulers: Vec<String>,
    /// Different seeds draw different sets.
    pub seed: u64,
    /// How periods are drawn.
    pub periods: Periods,
}

/// One scheduler on one set.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepRow {
    /// Index into the plan's loads.
    pub load: usize,
    /// Which set of that load.
    pub set: u64,
    /// Its name.
    pub scheduler: String,
    /// Jobs that count.
    pub released: u64,
    /// Those in time.
    pub met: u64,
}

/// Why a sweep cannot go on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SweepError {
    /// A set that cannot be drawn.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A scheduler that is unknown or broke its contract.
    #[error(transparent)]
    Run(#[from] CompareError),
}

impl SweepPlan {
    /// Drops the schedulers that cannot run on this number of cores and says why, so that every set has a row for each left.
    pub fn drop_inapplicable(&mut self) -> Result<Vec<(String, String)>, SweepError> {
        let system = self.draw(0, 0)?.system();
        let mut dropped = Vec::new();
        for name in std::mem::take(&mut self.schedulers) {
            match build(&name).map_err(CompareError::from)?.start(&system) {
                Ok(()) => self.schedulers.push(name),
                Err(why) => dropped.push((name, why.to_string())),
            }
        }
        Ok(dropped)
    }

    fn seed_of(&self, load: usize, set: u64) -> u64 {
        self.seed.wrapping_mul(1_000_003).wrapping_add(load as u64).wrapping_mul(1_000_003).wrapping_add(set)
    }

    fn draw(&self, load: usize, set: u64) -> Result<TaskSet, GenerateError> {
        let spec = Spec {
            tasks: self.tasks,
            cores: self.cores,
            utilization: self.loads[load] * self.cores as f64,
            method: Method::RandFixedSum,
            periods: self.periods.clone(),
            granularity: Time::from_us(1),
        };
        generate(&spec, self.seed_of(load, set))
    }

    /// Every scheduler on one set; a function of the plan, the load and the set's number alone.
    pub fn run_set(&self, load: usize, set: u64) -> Result<Vec<SweepRow>, SweepError> {
        let (drawn, seed) = (self.draw(load, set)?, self.seed_of(load, set));
        let per_second = expected_jobs(&drawn, Time::from_secs(1));
        let horizon = Time((self.jobs as f64 / per_second * 1e9) as u64);
        let mut rows = Vec::new();
        for name in &self.schedulers {
            let mut scheduler = build(name).map_err(CompareError::from)?;
            let metrics = simulate(&drawn, seed, horizon, &mut *scheduler, &mut Unobserved);
            let metrics = metrics.map_err(|error| CompareError::Run(name.clone(), error))?;
            let (released, met) = (metrics.jobs.released, metrics.jobs.met);
            rows.push(SweepRow { load, set, scheduler: name.clone(), released, met });
        }
        Ok(rows)
    }

    /// Acceptance ratio and compliance of each scheduler at each load: `[scheduler][load]`.
    pub fn summary(&self, rows: &[SweepRow]) -> Vec<(String, Vec<Summary>)> {
        let of = |name: &String| -> Vec<Summary> {
            let at = |load: usize| {
                let mut summary = Summary::default();
                for row in rows.iter().filter(|row| row.scheduler == *name && row.load == load) {
                    summary.sets += 1;
                    summary.accepted += u64::from(row.met == row.released);
                    summary.released += row.released;
                    summary.met += row.met;
                }
                summary
            };
            (0..self.loads.len()).map(at).collect()
        };
        self.schedulers.iter().map(|name| (name.clone(), of(name))).collect()
    }

    /// Both curves as one picture.
    pub fn picture(&self, rows: &[SweepRow]) -> String {
        let summary = self.summary(rows);
        let curves = |value: fn(&Summary) -> f64| {
            let curve = |points: &Vec<Summary>| self.loads.iter().copied().zip(points.iter().map(value)).collect();
            summary.iter().map(|(_, points)| curve(points)).collect()
        };
        let x_label = "utilisation per core";
        let panels = [
            Panel { title: "Sets met completely", x_label, curves: curves(Summary::acceptance) },
            Panel { title: "Deadlines met", x_label, curves: curves(Summary::compliance) },
        ];
        svg(&panels, &summary.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>())
    }
}

/// One scheduler at one load.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Sets run.
    pub sets: u64,
    /// Sets without a miss.
    pub accepted: u64,
    /// Jobs that count.
    pub released: u64,
    /// Those in time.
    pub met: u64,
}

impl Summary {
    /// Share of sets without a miss.
    pub fn acceptance(&self) -> f64 {
        self.accepted as f64 / self.sets.max(1) as f64
    }

    /// Share of jobs in time.
    pub fn compliance(&self) -> f64 {
        self.met as f64 / self.released.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acceptance_falls_with_load_and_optimal_schedulers_accept_all_that_fits() {
        let mut plan = SweepPlan {
            loads: vec![0.5, 0.95, 1.2],
            cores: 2,
            tasks: 5,
            sets: 30,
            jobs: 300,
            schedulers: ["edf", "dp-wrap", "d-over"].map(String::from).to_vec(),
            seed: 1,
            periods: Periods::LogUniform(Time::from_ms(10), Time::from_ms(100)),
        };
        assert_eq!(plan.drop_inapplicable().unwrap().len(), 1, "d-over needs one core");
        let cells = (0..3).flat_map(|load| (0..30).map(move |set| (load, set)));
        let rows: Vec<SweepRow> = cells.flat_map(|(load, set)| plan.run_set(load, set).unwrap()).collect();
        let summary = plan.summary(&rows);
        assert_eq!(summary.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["edf", "dp-wrap"]);
        let [edf, wrap] = [0, 1].map(|at| summary[at].1.iter().map(Summary::acceptance).collect::<Vec<_>>());
        assert_eq!(wrap, [1.0, 1.0, 0.0]);
        assert!(edf[0] > edf[1] && edf[1] < 1.0 && edf[2] == 0.0, "{edf:?}");
        assert_eq!(plan.run_set(1, 7).unwrap(), plan.run_set(1, 7).unwrap());
    }
}
