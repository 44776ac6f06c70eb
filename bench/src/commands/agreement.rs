//! Agreement of reduced-precision arithmetic with single precision: the same best row, and the same jobs on the cores.

use crate::scene::{Scene, chosen};
use anyhow::Result;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use serde::Serialize;
use temponet::stages::{Mapper, Observation, Scale, Tokenizer};
use temponet::{Mapping, Model};
use temponet_infer::{Kernel, Network, NetworkOptions, Precision};

use temponet_cli::table;

/// Number of random networks. The built-in network is measured as often.
const NETWORKS: u64 = 20;
/// Greatest number of decisions of each network.
const DECISIONS: u64 = 200;
/// Range of the number of jobs in a decision, always more than there are cores.
const JOBS: std::ops::RangeInclusive<usize> = 9..=200;

/// Number of decisions in which an arithmetic agrees with single precision.
#[derive(Serialize)]
pub struct AgreementFigures {
    tokens: &'static str,
    arithmetic: String,
    decisions: u64,
    same_best: u64,
    same_assignment: u64,
}

/// Measures every kernel of this machine with reduced precision.
pub fn measure(passes: u64) -> Result<Vec<AgreementFigures>> {
    let mut all = Vec::new();
    let built_in = Model::built_in()?;
    type Make<'a> = &'a dyn Fn(u64) -> Model;
    let makers: [(&str, Make<'_>); 3] = [
        ("paper", &|seed| Model::random(Tokenizer::paper(), seed)),
        ("full", &|seed| Model::random(Tokenizer::full(), seed)),
        ("built-in", &|_| built_in.clone()),
    ];
    for (tokens, make) in makers {
        let kernels = Kernel::available().into_iter().filter(|kernel| kernel.precision() < Precision::F32);
        let figures = |arithmetic: String| AgreementFigures {
            tokens,
            arithmetic,
            decisions: 0,
            same_best: 0,
            same_assignment: 0,
        };
        let mut rough: Vec<AgreementFigures> = kernels.clone().map(|kernel| figures(kernel.to_string())).collect();
        let mut rng = Pcg64::seed_from_u64(1);
        let (mut observation, mut mapper) = (Observation::default(), Mapper::default());
        let (mut expected, mut q) = (Vec::new(), Vec::new());
        for seed in 0..NETWORKS {
            let model = make(seed);
            let network = |options: NetworkOptions| Network::new(&model.weights, options);
            let mut exact = network(NetworkOptions { precision: Precision::F32, ..NetworkOptions::default() })?;
            let of_kernel = |kernel: Kernel| network(NetworkOptions::of(kernel));
            let mut networks = kernels.clone().map(of_kernel).collect::<Result<Vec<_>, _>>()?;
            for _ in 0..DECISIONS.min(passes.div_ceil(NETWORKS)) {
                let scene = Scene::new(rng.random_range(JOBS), rng.random());
                let view = scene.view();
                observation.read(&model.tokenizer, &Scale::of(&model.tokenizer, &scene.system), &view, false);
                let rows = observation.rows();
                exact.forward(&rows, &mut expected);
                let mut assigned = |q: &[f32]| {
                    let jobs = observation.jobs().iter().map(|(id, row)| (*id, q[*row as usize]));
                    (best(q), chosen(&mut mapper, Mapping::Greedy, jobs, &view))
                };
                let expected = assigned(&expected);
                for (network, figures) in networks.iter_mut().zip(&mut rough) {
                    network.forward(&rows, &mut q);
                    let assigned = assigned(&q);
                    figures.decisions += 1;
                    figures.same_best += u64::from(assigned.0 == expected.0);
                    figures.same_assignment += u64::from(assigned.1 == expected.1);
                }
            }
        }
        all.extend(rough);
    }
    Ok(all)
}

/// Returns the row with the greatest Q-value, the first one of equals.
fn best(q: &[f32]) -> usize {
    (0..q.len()).max_by(|a, b| q[*a].total_cmp(&q[*b]).then(b.cmp(a))).unwrap_or(0)
}

/// Renders the figures as a table.
pub fn text(figures: &[AgreementFigures]) -> String {
    let header = ["tokens", "arithmetic", "same best row", "same jobs on 8 cores", "share"];
    let row = |figures: &AgreementFigures| {
        vec![
            figures.tokens.to_string(),
            figures.arithmetic.clone(),
            format!("{} of {}", figures.same_best, figures.decisions),
            format!("{} of {}", figures.same_assignment, figures.decisions),
            format!("{:.2}%", 100.0 * figures.same_assignment as f64 / figures.decisions.max(1) as f64),
        ]
    };
    table::render(&header, &figures.iter().map(row).collect::<Vec<_>>())
}
