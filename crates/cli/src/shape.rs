//! Options of `generate` and `sweep` that determine how random task sets are drawn.

use temponet_sim::generate::text::{deadlines, method, number, positive_time, range, rule};
use temponet_sim::generate::{Critical, Deadlines, Method, Rule, Spec};
use temponet_task::{Task, Time};

/// Options of random tasks.
#[derive(clap::Args)]
pub struct ShapeArgs {
    /// How the total utilization is divided among tasks: randfixedsum, uunifast (discarding), capped:MOST or
    /// capped:A,B,… (one cap per task), unc:NAME (uni-, exp- or bimo-light, -medium or -heavy), waters2015 (automotive)
    #[arg(long, value_name = "RULE", default_value = "randfixedsum", value_parser = method)]
    method: Method,
    /// Distribution of periods: log:MIN,MAX, uniform:MIN,MAX, list:A,B,…, harmonic:BASE,MAX, pareto:SHAPE,MIN, or UNC's
    /// uni-short, uni-moderate, uni-long [default: log:10ms,100ms]
    #[arg(long, value_name = "RULE", value_parser = rule, conflicts_with = "wcets")]
    periods: Option<Rule>,
    /// Distribution of execution times, with the rules of --periods; periods then follow from the utilizations
    #[arg(long, value_name = "RULE", value_parser = rule)]
    wcets: Option<Rule>,
    /// Relative deadlines: implicit, or slack:LOW,HIGH, uniform between these shares of the way from the wcet (0) to
    /// the period (1)
    #[arg(long, value_name = "RULE", default_value = "implicit", value_parser = deadlines)]
    deadlines: Deadlines,
    /// Best-case execution time as a share of the wcet, 0 to 1; execution times are uniform in between
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    bcet: f64,
    /// Error of the estimates of execution times that jobs carry, as standard deviation of the logarithm: 0 is exact,
    /// 0.3 about 30% [default: no estimates]
    #[arg(long, value_name = "ERROR", value_parser = error)]
    estimates: Option<f64>,
    /// Share of critical tasks, 0 to 1 [default: 0; waters2015: 0.3]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    critical: Option<f64>,
    /// Wcet of critical tasks at high criticality, as a multiple of their wcet; a tenth of their jobs overrun up to it
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = factor)]
    critical_factor: f64,
    /// Range of the tasks' values, which are uniform: LOW,HIGH
    #[arg(long, value_name = "RANGE", default_value = "1,1", value_parser = range)]
    values: (f64, f64),
    /// Granularity: periods and execution times are whole multiples of it
    #[arg(long, value_name = "TIME", default_value = "1us", value_parser = positive_time)]
    granularity: Time,
}

impl ShapeArgs {
    /// Whether the method may run without a number of tasks.
    pub fn counts_tasks(&self) -> bool {
        self.method.counts_tasks()
    }

    /// Returns the specification of random sets with these options.
    pub fn spec(&self, tasks: Option<usize>, cores: usize, utilization: f64) -> anyhow::Result<Spec> {
        let plain = Spec::new(1, cores, utilization);
        let share = self.critical.unwrap_or(self.method.critical_share());
        Ok(Spec {
            tasks,
            lengths: self.method.lengths(self.periods.clone(), self.wcets.clone(), self.bcet)?,
            method: self.method.clone(),
            deadlines: self.deadlines,
            bcet: self.bcet,
            estimate_error: self.estimates,
            critical: Critical { share, factor: self.critical_factor, ..plain.critical },
            values: self.values,
            granularity: self.granularity,
            ..plain
        })
    }
}

/// Parses a finite number greater than zero.
pub fn positive_number(text: &str) -> Result<f64, String> {
    number(text, f64::MIN_POSITIVE, f64::MAX).map_err(|_| "must be a number greater than zero".into())
}

fn share(text: &str) -> Result<f64, String> {
    number(text, 0.0, 1.0)
}

fn error(text: &str) -> Result<f64, String> {
    number(text, 0.0, Task::MOST_ESTIMATE_ERROR)
}

fn factor(text: &str) -> Result<f64, String> {
    number(text, 1.0, 1e6)
}
