//! E16: a model trained on 8 cores runs on 4, 16 and 32, without adaptation and after a few episodes there.

use serde::Deserialize;
use temponet_train::Recipe;

use crate::ablation::{Effort, Variant};
use crate::adaptation::adapted;
use crate::plots::share_range;
use crate::{Baselines, Context, Findings, Line, ReproduceError, Unit};
use temponet_lab::stats::{mean, percent, points};
use temponet_page::charts::Grid;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    /// Number of episodes of adaptation.
    episodes: u64,
    /// Learning rate during adaptation.
    rate: f64,
    effort: Effort,
}

/// Number of cores and load per core, in percent, of each workload.
const WHERE: [(usize, u64); 7] = [(4, 60), (4, 90), (4, 130), (16, 60), (16, 90), (16, 130), (32, 110)];

pub fn run(context: &Context<'_>, findings: &mut Findings) -> Result<(), ReproduceError> {
    let (protocol, Settings { episodes, rate, effort }) = &context.protocol::<Settings>()?;
    let recipe = effort.recipe(&protocol.recipe, findings);
    let base = context.train_variants(&[Variant::new("8 cores", recipe.clone())], effort.seeds)?.remove(0);
    let on = |(cores, load): (usize, u64)| {
        let mut recipe: Recipe = adapted(&recipe, *episodes, *rate);
        (recipe.workload.cores, recipe.workload.load) = (vec![cores], (load as f64 / 100.0, load as f64 / 100.0));
        Variant { begin_with: Some(&base), ..Variant::new(format!("{cores} cores"), recipe) }
    };
    let adapted = context.train_variants(&WHERE.map(on), effort.seeds)?;
    // Shares of jobs in time of the places: of the model without and with adaptation, of the best classical scheduler
    // and of the optimum.
    let mut shares: Vec<[f64; 4]> = Vec::new();
    for ((cores, load), trained) in WHERE.into_iter().zip(adapted) {
        let bed = protocol.test_bed(format!("{cores} cores"), &format!("cores_{cores}_{load}"), effort.test)?;
        let named = vec![("zero".to_string(), base.clone()), ("adapted".to_string(), trained)];
        let held = context.contest_models(&bed, named)?;
        let [zero, adapted] = &held.results[..] else { return Err(context.protocol_error("there are not two models")) };
        findings.add(held.share_line(format!("zero_shot_{cores}_cores_{load}"), zero));
        findings.add(held.share_line(format!("adapted_{cores}_cores_{load}"), adapted));
        let Baselines { best, optimum, .. } = held.contest.baselines();
        let optimum = optimum.map_or(f64::NAN, |(optimum, _)| optimum);
        let best = best.unwrap_or(f64::NAN);
        for (name, model) in [("gap", zero), ("adapted_gap", adapted)] {
            let to = |best: f64| model.shares().iter().map(|share| best - share).collect::<Vec<f64>>();
            let line = Line::lower(format!("{name}_{cores}_cores_{load}"), Unit::Share, to(optimum));
            findings.add(line.headline_if(name == "gap"));
            findings.add(Line::lower(format!("{name}_to_classical_{cores}_cores_{load}"), Unit::Share, to(best)));
        }
        shares.push([zero.mean_share(), adapted.mean_share(), best, optimum]);
    }
    draw(findings, &shares, *episodes);
    let (least, most) = share_range(shares.iter().map(|[zero, ..]| *zero));
    let below = |place: usize| mean(&shares.iter().map(|shares| shares[2] - shares[place]).collect::<Vec<f64>>());
    let is_worse = shares.iter().filter(|[zero, adapted, ..]| adapted < zero).count();
    let beside = format!(
        "as it is the model meets {} to {}, {} points below the best classical scheduler on average, adapted {} points below; {is_worse} of {} adaptations make it worse",
        percent(least),
        percent(most),
        points(below(0)),
        points(below(1)),
        WHERE.len()
    );
    findings.judge_claim(&beside);
    Ok(())
}

/// Draws the shares of all places as a heat map.
fn draw(findings: &mut Findings, shares: &[[f64; 4]], episodes: u64) {
    let grid = Grid {
        x_label: "the model of 8 cores, the best classical scheduler, the optimum or its bound".into(),
        y_label: "cores, load".into(),
        columns: ["as it is", "adapted", "classical", "optimum"].map(String::from).to_vec(),
        rows: WHERE.iter().map(|(cores, load)| format!("{cores}, {load}%")).collect(),
        cells: shares.iter().map(|shares| shares.map(Some).to_vec()).collect(),
        label: Some(percent),
        cell: Some((90.0, 30.0)),
        span: None,
    };
    let caption = format!("In time, mean over the seeds; adapted is after {episodes} episodes there.");
    findings.picture("Other numbers of cores", &caption, grid.svg());
}
