//! Drawing one random task set: the options of `temponet generate`, and the checks on what was drawn.

use temponet_sim::generate::{Critical, Deadlines, GenerateError, Lengths, Method, Rule, Spec, Variety, generate};
use temponet_task::{TaskSet, Time};
use temponet_wording::counted;

/// How random tasks are drawn.
#[derive(Clone, Debug)]
pub struct SetShape {
    /// Rule that divides the total utilization among the tasks.
    pub method: Method,
    /// Distribution of periods; `None` is the default one, or none beside `wcets`.
    pub periods: Option<Rule>,
    /// Distribution of execution times; periods then follow from the utilizations.
    pub wcets: Option<Rule>,
    /// Relative deadlines.
    pub deadlines: Deadlines,
    /// Best-case execution time as a share of the wcet, 0 to 1.
    pub bcet: f64,
    /// Error of the estimates that jobs carry; `None` if they carry none.
    pub estimates: Option<f64>,
    /// Share of critical tasks, 0 to 1; `None` is the method's own.
    pub critical: Option<f64>,
    /// Wcet of critical tasks at high criticality, as a multiple of their wcet.
    pub critical_factor: f64,
    /// Range of the tasks' values.
    pub values: (f64, f64),
    /// Granularity of periods and execution times.
    pub granularity: Time,
}

/// Reason why a set cannot be drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DrawError {
    /// Options that contradict the method.
    #[error("waters2015 has periods and execution times of its own: leave --periods, --wcets and --bcet out")]
    OwnTimes,
    /// Set that cannot be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// Rounding that changes the utilization: granularity, total and wanted utilization.
    #[error("rounding to {0} makes the total utilization {1:.4}, not {2}; try a finer --granularity or longer periods")]
    Rounding(Time, f64, f64),
    /// Mode whose execution times would be out of range: its name and factor.
    #[error("mode {0:?} would have execution times {1} times as long; a thousand times, or a thousandth, is the most")]
    Mode(String, f64),
}

impl SetShape {
    /// Returns the specification of random sets of this shape.
    pub fn spec(&self, tasks: Option<usize>, cores: usize, utilization: f64) -> Result<Spec, DrawError> {
        let plain = Spec::new(1, cores, utilization);
        let lengths = match (&self.periods, &self.wcets) {
            (Some(rule), _) => Lengths::Periods(rule.clone()),
            (_, Some(rule)) => Lengths::Wcets(rule.clone()),
            _ => plain.lengths.clone(),
        };
        let is_automotive = self.method == Method::Waters2015;
        if is_automotive && (self.periods.is_some() || self.wcets.is_some() || self.bcet < 1.0) {
            return Err(DrawError::OwnTimes);
        }
        let share = self.critical.unwrap_or(if is_automotive { 0.3 } else { 0.0 });
        let critical = Critical { share, factor: self.critical_factor, ..plain.critical };
        Ok(Spec {
            tasks,
            method: self.method.clone(),
            lengths,
            deadlines: self.deadlines,
            bcet: self.bcet,
            estimate_error: self.estimates,
            critical,
            values: self.values,
            granularity: self.granularity,
            ..plain
        })
    }
}

/// Parses further properties: `wide`, or a list such as `sporadic,told`.
pub fn variety(text: &str) -> Result<Variety, String> {
    let mut variety = Variety::preset(text).map_or_else(|| Variety::certain(text.split(',').map(str::trim)), Ok)?;
    if Variety::PRESETS.contains(&text) {
        // A list of jobs is another kind of file, which the user has to choose by its name.
        variety.lists.chance = 0.0;
    }
    Ok(variety)
}

/// Greatest relative change of the total utilization by rounding.
const MOST_ROUNDING: f64 = 0.05;

/// Draws a set and describes it. The utilization of the specification must survive rounding.
pub fn draw(spec: &Spec, variety: Option<&Variety>, seed: u64) -> Result<TaskSet, DrawError> {
    let mut set = generate(spec, seed)?;
    let wanted = spec.utilization + spec.burst.map_or(0.0, |burst| burst.utilization);
    if (set.utilization() / wanted - 1.0).abs() > MOST_ROUNDING {
        return Err(DrawError::Rounding(spec.granularity, set.utilization(), wanted));
    }
    if let Some(variety) = variety {
        variety.apply(&mut set, seed);
    }
    if let Some(mode) = set.modes.iter().find(|mode| !(0.001..=1000.0).contains(&mode.work)) {
        return Err(DrawError::Mode(mode.name.clone(), mode.work));
    }
    let (tasks, total, mean) = (counted(set.tasks().len(), "random task"), set.utilization(), set.mean_utilization());
    set.description = format!("{tasks}, total utilization {total:.4} (mean {mean:.4}), seed {seed}");
    Ok(set)
}
