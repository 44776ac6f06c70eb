//! The paper's two jobs on which SRPT misses a deadline that least slack meets, and the share of random pairs that
//! behave alike.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Deserialize;
use temponet_sim::{Unobserved, simulate};
use temponet_task::{Task, TaskSet, Time};

use crate::{Better, Context, Findings, Line, ReproduceError, Unit, Verdict};
use temponet_lab::comparison::CompareError;
use temponet_lab::roster::SHIELDED;
use temponet_lab::stats::percent;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Number of random pairs.
    pairs: u64,
    seed: u64,
}

/// The paper's jobs: execution time and deadline, in microseconds.
const PAIR: [(u64, u64); 2] = [(1_000, 100_000), (2_000, 2_200)];

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (_, settings) = &context.protocol::<Settings>()?;
    let contenders = ["srpt", "llf", "edf", SHIELDED];
    for name in contenders {
        let met = met(context, name, PAIR)? as f64;
        let name = format!("{}_met", context.roster.label(name));
        findings.add(Line::new(name, Unit::Number, Better::Higher, met).headline());
    }
    let mut rng = Pcg64::seed_from_u64(settings.seed);
    let mut draw = || {
        let execution = rng.random_range(500..5_000);
        (execution, execution + rng.random_range(0..20_000))
    };
    let (mut possible, mut missed) = (0u64, [0u64; 4]);
    for _ in 0..settings.pairs {
        let pair = [draw(), draw()];
        if met(context, "edf", pair)? < 2 {
            continue;
        }
        possible += 1;
        for (missed, name) in missed.iter_mut().zip(contenders) {
            *missed += u64::from(met(context, name, pair)? < 2);
        }
    }
    let shares = missed.map(|missed| missed as f64 / possible.max(1) as f64);
    for (share, name) in shares.into_iter().zip(contenders) {
        findings.add(Line::lower(format!("{}_missing_pairs", context.roster.label(name)), Unit::Share, share));
    }
    let of = |name: &str| findings.value(&format!("{}_met", context.roster.label(name)));
    let is_so = of("srpt") == 1.0 && of("llf") == 2.0;
    let sentence = format!(
        "SRPT meets {} of the two deadlines, least slack {}, EDF {}, the learned scheduler {}; of {possible} random pairs that can be met SRPT misses one in {}, \
         the learned scheduler in {}",
        of("srpt"),
        of("llf"),
        of("edf"),
        of(SHIELDED),
        percent(shares[0]),
        percent(shares[3]),
    );
    findings.conclude(if is_so { Verdict::Reproduced } else { Verdict::Refuted }, &sentence);
    Ok(())
}

/// Returns how many of two jobs, released together, a scheduler completes in time.
fn met(context: &Context<'_>, name: &str, pair: [(u64, u64); 2]) -> Result<u64, ReproduceError> {
    let horizon = Time::from_ms(200);
    let task = |(index, (execution, deadline)): (usize, (u64, u64))| {
        Task::periodic(["a", "b"][index], horizon, Time::from_us(execution)).with_deadline(Time::from_us(deadline))
    };
    let set = TaskSet::new("pair", pair.into_iter().enumerate().map(task).collect(), 1);
    let mut scheduler = context.roster.build(name).map_err(CompareError::from)?;
    Ok(simulate(&set, 1, horizon, &mut *scheduler, &mut Unobserved)?.jobs.met)
}
