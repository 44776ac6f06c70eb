//! Text form of generator specifications in flags and files: `log:10ms,100ms`, `capped:0.5`, `slack:0.5,1`.
//!
//! The error of every function states what is expected.

use serde::Deserialize;
use temponet_task::{Task, Time};

use super::{BurstSpec, Critical, Deadlines, Lengths, Method, Properties, Rule, Spec, Unc};

/// Specification as files and other languages state it, with the words of `temponet generate`. Whatever is left out is
/// as in [`Spec::new`].
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SpecText {
    /// As [`method`] reads it.
    pub method: String,
    /// Least and greatest number of tasks, for users that draw sets of several sizes.
    pub tasks: Option<[usize; 2]>,
    /// As [`rule`] reads it.
    pub periods: Option<String>,
    /// As [`rule`] reads it, in place of periods.
    pub wcets: Option<String>,
    /// As [`deadlines`] reads it.
    pub deadlines: String,
    /// See [`Spec::bcet`].
    pub bcet: f64,
    /// See [`Spec::estimate_error`].
    pub estimates: Option<f64>,
    /// Share of critical tasks; `None` is [`Method::critical_share`].
    pub critical: Option<f64>,
    /// See [`Critical::factor`].
    pub critical_factor: f64,
    /// See [`Spec::values`].
    pub values: (f64, f64),
    /// As [`positive_time`] reads it.
    pub granularity: String,
}

impl Default for SpecText {
    fn default() -> SpecText {
        SpecText {
            method: "randfixedsum".into(),
            tasks: None,
            periods: None,
            wcets: None,
            deadlines: "implicit".into(),
            bcet: 1.0,
            estimates: None,
            critical: None,
            critical_factor: 1.0,
            values: (1.0, 1.0),
            granularity: "1us".into(),
        }
    }
}

impl SpecText {
    /// Reads the specification. Tasks, cores and utilization are still to be set.
    pub fn read(&self) -> Result<Spec, String> {
        fn read<T>(name: &str, text: &str, parse: fn(&str) -> Result<T, String>) -> Result<T, String> {
            parse(text).map_err(|why| format!("{name} = {text:?}: {why}"))
        }
        let rule = |name, text: &Option<String>| text.as_deref().map(|text| read(name, text, rule)).transpose();
        let numbers = [
            ("bcet", self.bcet, 0.0, 1.0),
            ("critical", self.critical.unwrap_or(0.0), 0.0, 1.0),
            ("estimates", self.estimates.unwrap_or(0.0), 0.0, Task::MOST_ESTIMATE_ERROR),
            ("critical_factor", self.critical_factor, 1.0, 1e6),
        ];
        if let Some((name, value, low, high)) =
            numbers.into_iter().find(|(_, value, low, high)| !(*low..=*high).contains(value))
        {
            return Err(format!("{name} = {value} is not from {low} to {high}"));
        }
        let plain = Spec::new(1, 1, 0.0);
        let method = read("method", &self.method, method)?;
        let (periods, wcets) = (rule("periods", &self.periods)?, rule("wcets", &self.wcets)?);
        Ok(Spec {
            tasks: None,
            lengths: method.lengths(periods, wcets, self.bcet).map_err(|error| error.to_string())?,
            deadlines: read("deadlines", &self.deadlines, deadlines)?,
            bcet: self.bcet,
            estimate_error: self.estimates,
            critical: Critical {
                share: self.critical.unwrap_or(method.critical_share()),
                factor: self.critical_factor,
                ..plain.critical
            },
            values: read("values", &format!("{},{}", self.values.0, self.values.1), range)?,
            granularity: read("granularity", &self.granularity, positive_time)?,
            method,
            ..plain
        })
    }
}

/// Parses a finite number from `low` to `high`, both included.
pub fn number(text: &str, low: f64, high: f64) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok().filter(|number| (low..=high).contains(number));
    number.ok_or_else(|| match high == f64::MAX {
        true => format!("{text:?} is not a number of at least {low}"),
        false => format!("{text:?} is not a number from {low} to {high}"),
    })
}

/// Parses a time with its unit; only zero may go without.
pub fn time(text: &str) -> Result<Time, String> {
    Time::with_unit(text)
}

/// Parses a time greater than zero, with its unit.
pub fn positive_time(text: &str) -> Result<Time, String> {
    match time(text)? {
        Time::ZERO => Err("must be greater than zero".into()),
        time => Ok(time),
    }
}

/// Parses `randfixedsum`, `uunifast`, `capped:…`, `unc:NAME` or `waters2015`.
pub fn method(text: &str) -> Result<Method, String> {
    match text.split_once(':') {
        None if text == "randfixedsum" => Ok(Method::RandFixedSum),
        None if text == "uunifast" => Ok(Method::UUniFastDiscard),
        None if text == "waters2015" => Ok(Method::Waters2015),
        Some(("capped", caps)) => {
            let caps: Result<Vec<f64>, String> = caps.split(',').map(|cap| number(cap, 1e-9, 1.0)).collect();
            Ok(Method::Capped(caps?))
        }
        Some(("unc", name)) => {
            let unknown = || format!("{name:?} is none of {}", Unc::NAMES.join(", "));
            Unc::from_name(name).map(Method::Unc).ok_or_else(unknown)
        }
        _ => Err("is none of randfixedsum, uunifast, capped:…, unc:NAME, waters2015".into()),
    }
}

/// Parses `log:10ms,100ms`, `uniform:…`, `list:…`, `harmonic:…`, `pareto:2,10ms`, `uni-short`, `uni-moderate` or
/// `uni-long`.
pub fn rule(text: &str) -> Result<Rule, String> {
    let uniform = |low, high| Ok(Rule::Uniform(Time::from_ms(low), Time::from_ms(high)));
    let (name, times) = match text {
        "uni-short" => return uniform(3, 33),
        "uni-moderate" => return uniform(10, 100),
        "uni-long" => return uniform(50, 250),
        _ => text.split_once(':').ok_or("must be RULE:TIMES, such as log:10ms,100ms")?,
    };
    if name == "pareto" {
        let (shape, least) = times.split_once(',').ok_or("pareto needs a shape and a time, such as pareto:2,10ms")?;
        return Ok(Rule::Pareto(number(shape, 0.1, 100.0)?, positive_time(least)?));
    }
    let times: Vec<Time> = times.split(',').map(positive_time).collect::<Result<_, _>>()?;
    match (name, &times[..]) {
        ("list", _) => Ok(Rule::List(times)),
        ("log", [low, high]) if low <= high => Ok(Rule::LogUniform(*low, *high)),
        ("uniform", [low, high]) if low <= high => Ok(Rule::Uniform(*low, *high)),
        ("harmonic", [base, most]) if base <= most => Ok(Rule::Harmonic(*base, *most)),
        ("log" | "uniform" | "harmonic", _) => Err(format!("{name} needs two times, the smaller first")),
        _ => Err(format!("{name:?} is none of log, uniform, list, harmonic, pareto")),
    }
}

/// Parses `implicit` or `slack:LOW,HIGH`.
pub fn deadlines(text: &str) -> Result<Deadlines, String> {
    match text.split_once(':') {
        None if text == "implicit" => Ok(Deadlines::Implicit),
        Some(("slack", slack)) => range(slack).map(|(low, high)| Deadlines::Slack(low, high)),
        _ => Err("is neither implicit nor slack:LOW,HIGH".into()),
    }
}

/// Describes a specification in the words of the flags, for the comment at the top of a file.
pub fn described(spec: &Spec) -> String {
    let Spec {
        tasks,
        cores,
        utilization,
        method,
        lengths,
        deadlines,
        bcet,
        estimate_error,
        critical,
        values,
        burst,
        modes,
        granularity,
        properties,
    } = spec;
    let method = match method {
        Method::RandFixedSum => "randfixedsum".into(),
        Method::UUniFastDiscard => "uunifast".into(),
        Method::Capped(caps) => format!("capped:{}", joined(caps)),
        Method::Unc(name) => format!("unc:{}", name.name()),
        Method::Waters2015 => "waters2015".into(),
    };
    let lengths = match lengths {
        Lengths::Periods(rule) => format!("periods {}", described_rule(rule)),
        Lengths::Wcets(rule) => format!("wcets {}", described_rule(rule)),
    };
    let deadlines = match deadlines {
        Deadlines::Implicit => "implicit".into(),
        Deadlines::Slack(low, high) => format!("slack:{low},{high}"),
    };
    let Critical { share, factor, overrun } = critical;
    let mut text = format!(
        "method {method}, {lengths}, deadlines {deadlines}, bcet {bcet}, critical {share} by {factor} in {overrun}, values {},{}, granularity {granularity}",
        values.0, values.1
    );
    for (what, number) in
        [("tasks", tasks.unwrap_or(0) as f64), ("cores", *cores as f64), ("utilization", *utilization)]
    {
        if number > 0.0 {
            text += &format!(", {what} {number}");
        }
    }
    if let Some(error) = estimate_error {
        text += &format!(", estimates {error}");
    }
    if let Some(BurstSpec { jobs, deadline, every, until, utilization }) = burst {
        text += &format!(", burst {jobs},{deadline},{every},{until},{utilization}");
    }
    for (name, at, utilization) in modes {
        text += &format!(", mode {name}={utilization}@{at}");
    }
    if *properties != Properties::default() {
        text += &format!(", {properties:?}");
    }
    text
}

fn described_rule(rule: &Rule) -> String {
    match rule {
        Rule::LogUniform(low, high) => format!("log:{low},{high}"),
        Rule::Uniform(low, high) => format!("uniform:{low},{high}"),
        Rule::List(times) => format!("list:{}", joined(times)),
        Rule::Harmonic(base, most) => format!("harmonic:{base},{most}"),
        Rule::Pareto(shape, least) => format!("pareto:{shape},{least}"),
    }
}

fn joined<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// Parses `LOW,HIGH`, neither below zero.
pub fn range(text: &str) -> Result<(f64, f64), String> {
    let (low, high) = text.split_once(',').ok_or("must be LOW,HIGH")?;
    let (low, high) = (number(low, 0.0, 1e9)?, number(high, 0.0, 1e9)?);
    if low <= high { Ok((low, high)) } else { Err("the smaller number comes first".into()) }
}
