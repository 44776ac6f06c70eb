//! Contract: the figures of a run equal those of its decisions, counted one by one.

use std::collections::BTreeSet;

use temponet::stages::{Learned, Observation, Tokenizer};
use temponet::{Model, Options};
use temponet_lab::explain::diagnostics::{RunDiagnostics, RunReport, explain};
use temponet_sched::build;
use temponet_sim::generate::{Spec, generate};
use temponet_sim::{Engine, Unobserved};
use temponet_task::{Assignment, Scheduler, SystemView, TaskSet, Time};

fn set(cores: usize, load: f64) -> TaskSet {
    let mut spec = Spec::new(8 * cores, cores, load * cores as f64);
    spec.critical.share = 0.4;
    generate(&spec, 7).unwrap()
}

/// Runs under `chooser`, whose choices count as the network's, and calls `see` at every decision.
fn run(
    set: &TaskSet,
    model: &Model,
    mut chooser: impl Scheduler,
    mut see: impl FnMut(&SystemView<'_>, &Assignment),
) -> RunReport {
    let mut others = ["edf", "srpt"].map(|name| build(name).unwrap());
    let system = set.system.clone();
    chooser.start(&system).unwrap();
    others.iter_mut().for_each(|other| other.start(&system).unwrap());
    let mut diagnostics = RunDiagnostics::new(model, &system, &["edf", "srpt"]);
    let mut engine = Engine::new(set, 1, Time::from_ms(250));
    let mut chosen = Assignment::default();
    let mut theirs = [(); 2].map(|()| Assignment::default());
    while engine.advance(&mut Unobserved) {
        let view = engine.view();
        chosen.reset(set.cores());
        chooser.decide(&view, &mut chosen);
        for (other, assignment) in others.iter_mut().zip(&mut theirs) {
            assignment.reset(set.cores());
            other.decide(&view, assignment);
        }
        diagnostics.add(&view, &chosen, &theirs);
        see(&view, &chosen);
        engine.apply(&chosen, &mut Unobserved).unwrap();
    }
    diagnostics.report()
}

#[test]
fn the_figures_of_a_run_are_those_of_its_decisions() {
    for cores in [1, 3] {
        let set = set(cores, 1.2);
        // Many untrained weights idle most of the time, which leaves too few dispatched jobs to compare (the first
        // assertion below). These do not.
        let model = Model::random(Tokenizer::full(), 2);
        let learned = Learned::new(model.clone().into(), Options::default()).unwrap();
        let (mut decisions, mut contested, mut aligned, mut ready, mut ran) = (0, 0, 0, 0, 0);
        let (mut top_3, mut busy, mut entropy) = (0.0, 0.0, 0.0);
        let mut observation = Observation::default();
        let report = run(&set, &model, learned, |view, chosen| {
            if view.active.is_empty() {
                return;
            }
            let explanation = explain(&model, &mut observation, view, chosen);
            decisions += 1;
            contested += u64::from(view.active.len() > cores);
            ready += view.active.len() as u64;
            ran += chosen.cores().iter().flatten().count() as u64;
            entropy += f64::from(explanation.entropy_bits[1]);
            // Attention of the decision token to idling, and to each job, whose row it shares with equal jobs.
            let heads: Vec<_> = explanation.attention.iter().filter(|map| map.layer == 1).collect();
            let idle = heads.iter().map(|map| map.weights[0][0]).sum::<f32>() / heads.len() as f32;
            let count = |row: u32| explanation.rows[row as usize - 1].count as f32;
            let mut jobs: Vec<(f32, i64, bool)> = explanation
                .jobs
                .iter()
                .map(|job| (-job.attention / count(job.row), job.due_in_ns, job.core.is_some()))
                .collect();
            jobs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let here = jobs.iter().filter(|job| job.2).count();
            aligned += u64::from(if idle > -jobs[0].0 { here == 0 } else { jobs[0].2 });
            if here > 0 {
                busy += 1.0;
                top_3 += jobs.iter().take(3).filter(|job| job.2).count() as f64 / here.min(3) as f64;
            }
        });
        assert!(decisions > 100 && contested > 50 && ran > 50, "{decisions} {contested} {ran}");
        assert_eq!((report.decisions, report.contested), (decisions, contested));
        assert!((report.alignment - aligned as f64 / decisions as f64).abs() < 1e-9);
        assert_eq!(report.top_k_alignment[1].k, 3);
        assert!((report.top_k_alignment[1].alignment - top_3 / busy).abs() < 1e-9);
        assert!((report.entropy_bits[1].mean - entropy / decisions as f64).abs() < 1e-4);
        assert_eq!(report.entropy_counts[1].iter().sum::<u64>(), decisions);
        let cells = report.heat_map.iter().fold((0, 0), |sum, cell| (sum.0 + cell.seen, sum.1 + cell.chosen));
        assert_eq!(cells, (ready, ran));
        assert_eq!((report.q_chosen.count, report.q_others.count), (ran, ready - ran));
        assert!((report.q_chosen.bars.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(report.q_chosen.quantiles.is_sorted_by(|a, b| a.1 <= b.1));
        // Jobs with the best Q-values are chosen, so the chosen ones have the greater median.
        assert!(report.q_chosen.quantiles[3].1 > report.q_others.quantiles[3].1);
        assert!(report.attention_criticality.unwrap().abs() <= 1.0 && report.attention_urgency.unwrap().abs() <= 1.0);
    }
}

#[test]
fn a_known_policy_is_recognised() {
    let model = Model::random(Tokenizer::full(), 1);
    let see_nothing = |_: &SystemView<'_>, _: &Assignment| {};
    let report = |name: &str| run(&set(1, 0.9), &model, build(name).unwrap(), see_nothing);
    let (edf, srpt, llf) = (report("edf"), report("srpt"), report("llf"));
    let agreement = |report: &RunReport| report.agreement.iter().map(|named| named.agreement.all).collect::<Vec<_>>();
    assert_eq!(agreement(&edf)[0], 1.0);
    assert_eq!(agreement(&srpt)[1], 1.0);
    assert!(agreement(&edf)[1] < 0.95 && agreement(&srpt)[0] < 0.95, "{edf:?}");
    assert!(
        edf.agreement[1].agreement.contested < edf.agreement[1].agreement.all,
        "where there is no choice, all agree"
    );
    // Shortest remaining time first is the rule with β alone; least laxity first is mostly the rule with α.
    assert!(srpt.rule.agreement.all > 0.99 && srpt.rule.beta > 0.5, "{:?}", srpt.rule);
    assert!(llf.rule.agreement.all > 0.8 && llf.rule.alpha > srpt.rule.alpha, "{:?}", llf.rule);
    let names: BTreeSet<&str> = edf.agreement.iter().map(|named| named.scheduler.as_str()).collect();
    assert_eq!(names, BTreeSet::from(["edf", "srpt"]));
}
