//! E16: a model of eight cores on four, sixteen and thirty-two, as it is and after a few episodes there.

use serde::Deserialize;
use temponet_train::Recipe;

use crate::ablation::{Effort, Variant, VariantResult};
use crate::adaptation::adapted;
use crate::{Better, Context, Estimate, Findings, Line, ReproduceError};
use temponet_lab::stats::{mean, percent};
use temponet_page::charts::Grid;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// How many episodes it adapts.
    episodes: u64,
    /// The learning rate meanwhile.
    rate: f64,
    effort: Effort,
}

/// Cores and load per core, in per cent, of the workloads.
const WHERE: [(usize, u64); 5] = [(4, 60), (4, 90), (16, 60), (16, 90), (32, 110)];

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let protocol = context.protocol::<Settings>()?;
    let Settings { episodes, rate, effort } = protocol.settings(context.mode);
    let recipe = effort.recipe(&protocol.recipe);
    let base = context.train_variants(&[Variant::new("8 cores", recipe.clone())], effort.seeds)?.remove(0);
    let on = |(cores, load): (usize, u64)| {
        let mut recipe: Recipe = adapted(&recipe, *episodes, *rate);
        (recipe.workload.cores, recipe.workload.load) = (vec![cores], (load as f64 / 100.0, load as f64 / 100.0));
        Variant { begin_with: Some(&base), ..Variant::new(format!("{cores} cores"), recipe) }
    };
    let adapted = context.train_variants(&WHERE.map(on), effort.seeds)?;
    let mut series: [Vec<f64>; 4] = Default::default();
    let mut is_worse = 0;
    for ((cores, load), trained) in WHERE.into_iter().zip(adapted) {
        let cases = protocol.cases(&format!("cores_{cores}_{load}"), effort.test)?;
        let named = vec![("zero".to_string(), base.clone()), ("adapted".to_string(), trained)];
        let what = format!("{cores} cores");
        let held = context.contest_models(&what, named, &cases, &protocol.schedulers, effort.test.oracle_seconds)?;
        let [zero, adapted] = &held.results[..] else { return Err(context.protocol_error("there are not two models")) };
        findings.add(held.share_line(format!("zero_shot_{cores}_cores_{load}"), zero));
        findings.add(held.share_line(format!("adapted_{cores}_cores_{load}"), adapted));
        let optimum = held.contest.optimum().map_or(f64::NAN, |(optimum, _)| optimum);
        let gaps: Vec<f64> = zero.shares().iter().map(|share| optimum - share).collect();
        let gap =
            Line { better: Better::Lower, ..Line::share(format!("gap_{cores}_cores_{load}"), Estimate::of(&gaps)) };
        findings.add(gap.headline());
        is_worse += usize::from(mean(&adapted.shares()) < mean(&zero.shares()));
        let best =
            held.contest.best_classical(Better::Higher, |run| run.in_time()).map_or(f64::NAN, |(_, share)| share);
        let shares = [mean(&VariantResult::shares(zero)), mean(&adapted.shares()), best, optimum];
        series.iter_mut().zip(shares).for_each(|(series, share)| series.push(share));
    }
    let rows = WHERE.iter().map(|(cores, load)| format!("{cores}, {load}%")).collect();
    let [zero, after, best, optimum] = &series;
    let (least, most) = (zero.iter().copied().fold(1.0, f64::min), zero.iter().copied().fold(0.0, f64::max));
    let below: Vec<f64> = best.iter().zip(zero).map(|(best, zero)| best - zero).collect();
    let cells = (0..WHERE.len()).map(|place| [zero, after, best, optimum].map(|of| Some(of[place])).to_vec()).collect();
    let grid = Grid {
        x_label: "the model of 8 cores, the best classical scheduler, the optimum or its bound".into(),
        y_label: "cores, load".into(),
        columns: ["as it is", "adapted", "classical", "optimum"].map(String::from).to_vec(),
        rows,
        cells,
        label: Some(percent),
        cell: Some((90.0, 30.0)),
        span: None,
    };
    let caption = format!("In time, mean over the seeds; adapted is after {episodes} episodes there.");
    findings.picture("Other numbers of cores", &caption, grid.svg());
    let beside = format!(
        "as it is the model meets {} to {}, {} points below the best classical scheduler on average, and {is_worse} of {} adaptations make it worse",
        percent(least),
        percent(most),
        temponet_lab::stats::points(mean(&below)),
        WHERE.len()
    );
    findings.judge_claim(&beside);
    Ok(())
}
