//! Drawing one random task set, as `temponet generate` does, with checks on what was drawn.

use temponet_sim::generate::{GenerateError, Spec, Variety, generate_tasks};
use temponet_task::{TaskSet, Time};
use temponet_wording::counted;

/// Reason why a set cannot be drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DrawError {
    /// Set that cannot be generated.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// Rounding that changes the utilization: granularity, total and wanted utilization.
    #[error("rounding to {0} makes the total utilization {1:.4}, not {2}; try a finer granularity or longer periods")]
    Rounding(Time, f64, f64),
    /// Mode whose execution times would be out of range: its name and factor.
    #[error("mode {0:?} would have execution times {1} times as long; a thousand times, or a thousandth, is the most")]
    Mode(String, f64),
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
pub fn draw(spec: &Spec, seed: u64) -> Result<TaskSet, DrawError> {
    let mut set = generate_tasks(spec, seed)?;
    let wanted = spec.utilization + spec.burst.map_or(0.0, |burst| burst.utilization);
    if (set.utilization() / wanted - 1.0).abs() > MOST_ROUNDING {
        return Err(DrawError::Rounding(spec.granularity, set.utilization(), wanted));
    }
    spec.properties.apply(&mut set, seed);
    if let Some(mode) = set.modes().iter().find(|mode| !(0.001..=1000.0).contains(&mode.work)) {
        return Err(DrawError::Mode(mode.name.clone(), mode.work));
    }
    let (tasks, total, mean) = (counted(set.tasks().len(), "random task"), set.utilization(), set.mean_utilization());
    set.description = format!("{tasks}, total utilization {total:.4} (mean {mean:.4}), seed {seed}");
    spec.properties.finish(&mut set, seed);
    Ok(set)
}
