//! The workloads that everyone runs, and what each one scores there. Every result is kept in the cache by itself, so
//! that an interrupted run goes on where it stopped, and a new rival runs alone.

use serde::{Deserialize, Serialize};
use temponet_lab::arena::{Case, Scenario, scenario};
use temponet_lab::clairvoyant::OptimumRange;
use temponet_task::Aim;

use super::field::Competitor;
use super::{SCENARIOS, Settings};
use crate::cache::{CODE, experiment_code, key};
use crate::{Contender, Contest, Context, Protocol, ReproduceError, RunFigures, RunMetric, Size, TestBed};

/// Runs that everyone makes.
pub struct Heat {
    /// Identifier, such as `e1`.
    pub id: &'static str,
    pub title: String,
    pub cases: Vec<Case>,
    /// Measure of the optimum, and its limit for one run in seconds of one core.
    pub oracle: (Aim, f64),
    /// Figures that are shown.
    pub columns: Vec<Column>,
}

/// A figure of a heat.
#[derive(Clone, Copy)]
pub struct Column {
    /// Identifier, with which the names of lines begin.
    pub id: &'static str,
    pub title: &'static str,
    pub of: RunMetric,
    /// Whether the optimum of the heat is that of this figure.
    pub has_optimum: bool,
}

const fn column(id: &'static str, title: &'static str, of: RunMetric, has_optimum: bool) -> Column {
    Column { id, title, of, has_optimum }
}

const IN_TIME: RunMetric = |run| Some(run.compliance);
const SUCCESS: RunMetric = |run| Some(run.success);
const CRITICAL: RunMetric = |run| run.pitmd;

impl Heat {
    /// Returns the heats of a mode.
    pub fn all(protocol: &Protocol, settings: &Settings) -> Result<Vec<Heat>, ReproduceError> {
        let heat = |id, title: &str, cases, oracle, columns| Heat { id, title: title.into(), cases, oracle, columns };
        let sized = |size: Size, aim| (aim, size.oracle_seconds);
        let large = |id, title: &str, workload: &str, size: crate::TimedSize, columns| {
            let cases = size.lasting(protocol.cases(workload, size.size())?);
            Ok::<Heat, ReproduceError>(heat(id, title, cases, (Aim::Met, size.oracle_seconds), columns))
        };
        let mut heats = vec![
            heat(
                "e1",
                "E1: standard set, three variants",
                protocol.cases("standard", settings.standard)?,
                sized(settings.standard, Aim::Met),
                vec![column("e1", "E1 in time", IN_TIME, true)],
            ),
            heat(
                "e2",
                "E2: heterogeneous sets",
                protocol.cases("heterogeneous", settings.heterogeneous)?,
                sized(settings.heterogeneous, Aim::Met),
                vec![column("e2", "E2 in time", IN_TIME, true)],
            ),
            large(
                "e3-100",
                "E3: 100 tasks on 8 cores",
                "hundred",
                settings.hundred,
                vec![
                    column("e3-100-success", "E3 success, 100", SUCCESS, false),
                    column("e3-100", "E3 in time, 100", IN_TIME, true),
                ],
            )?,
            large(
                "e3-600",
                "E3: 600 tasks on 8 cores",
                "six_hundred",
                settings.six_hundred,
                vec![
                    column("e3-600-success", "E3 success, 600", SUCCESS, false),
                    column("e3-600", "E3 in time, 600", IN_TIME, true),
                ],
            )?,
            heat(
                "e4",
                "E4: industrial software on 4 cores",
                protocol.cases("industrial", settings.industrial)?,
                sized(settings.industrial, Aim::Critical),
                vec![column("e4", "E4 critical in time", CRITICAL, true)],
            ),
        ];
        for name in SCENARIOS {
            let cases = scenario_cases(name, settings.scenario)?;
            heats.push(heat(
                name,
                name,
                cases,
                sized(settings.scenario, Aim::Met),
                vec![column(name, name, IN_TIME, true)],
            ));
        }
        Ok(heats)
    }
}

/// Returns runs of a scenario of the arena, as many and as long as `size` says, over its whole range of loads.
pub fn scenario_cases(name: &str, size: Size) -> Result<Vec<Case>, ReproduceError> {
    let wrong = |why: String| ReproduceError::Protocol(crate::RIVALS.into(), format!("scenario {name}: {why}"));
    let found = scenario::find(name).map_err(|error| wrong(error.to_string()))?;
    let first = *found.seeds.start();
    let seeds = first..=first + size.sets.max(1) - 1;
    Ok(Scenario { jobs: size.jobs, seeds, ..found }.cases(false)?)
}

/// What a competitor made of a heat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum HeatResult {
    Runs {
        /// Figures, run by run; of several trainings, their mean.
        runs: Vec<RunFigures>,
        /// Figures of each training, run by run, where there are several.
        trainings: Vec<Vec<RunFigures>>,
    },
    NotApplicable(String),
}

/// Lower and upper bound on what can be reached in each run.
#[derive(Serialize, Deserialize)]
struct Bounds(Vec<(f64, f64)>);

impl Context<'_> {
    /// Returns what a competitor makes of a heat; `None` if it has no scheduler.
    pub fn result(&self, heat: &Heat, who: &Competitor<'_>) -> Result<Option<HeatResult>, ReproduceError> {
        let Some(entrant) = &who.entrant else { return Ok(None) };
        let result = self.kept_part(&[heat.id, &who.name, &who.key], || {
            let label = format!("{}: {}", heat.title, who.name);
            let bed = TestBed { label, cases: heat.cases.clone(), classical: &[], oracle: None };
            let Contest { mut contenders, mut skipped, .. } = self.contest_of(&bed, std::slice::from_ref(entrant))?;
            Ok(match (contenders.pop(), skipped.pop()) {
                (Some(Contender { runs, trainings, .. }), _) => HeatResult::Runs { runs, trainings },
                (None, skipped) => HeatResult::NotApplicable(skipped.map(|(_, why)| why).unwrap_or_default()),
            })
        })?;
        Ok(Some(result))
    }

    /// Returns bounds on what can be reached in each run of a heat.
    pub fn bounds(&self, heat: &Heat) -> Result<Vec<OptimumRange>, ReproduceError> {
        let Bounds(known) = self.kept_part(&[heat.id, "optimum"], || {
            let label = format!("{}: optimum", heat.title);
            let bed = TestBed { label, cases: heat.cases.clone(), classical: &[], oracle: Some(heat.oracle) };
            let found = self.contest_of(&bed, &[])?.possible;
            Ok(Bounds(found.iter().map(|range| (range.lower, range.upper)).collect()))
        })?;
        Ok(known.into_iter().map(|(lower, upper)| OptimumRange { lower, upper }).collect())
    }

    /// Returns the name of the cache file of a part of the experiment.
    fn part(&self, of: &[&str]) -> String {
        let common = [CODE, experiment_code(self.experiment.module), self.experiment.protocol, self.mode.name()];
        format!("rivals-part-{}.json", key(&[&common, of].concat()))
    }

    /// Returns a part of the experiment from the cache, or works it out and keeps it. A damaged file is replaced.
    pub fn kept_part<T: Serialize + serde::de::DeserializeOwned>(
        &self,
        of: &[&str],
        work_out: impl FnOnce() -> Result<T, ReproduceError>,
    ) -> Result<T, ReproduceError> {
        let file = self.part(of);
        if let Some(known) = self.cache.read(&file)?.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
            return Ok(known);
        }
        let part = work_out()?;
        let wrong = |error: serde_json::Error| ReproduceError::Cache(file.clone(), error.to_string());
        self.cache.write(&file, &serde_json::to_vec(&part).map_err(wrong)?)?;
        Ok(part)
    }
}
