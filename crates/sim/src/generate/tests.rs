//! Tests that the distributions are what they claim to be.

use super::shares::draw as draw_shares;
use super::*;

fn spec(tasks: usize, utilization: f64, method: Method) -> Spec {
    Spec { method, ..Spec::new(tasks, 8, utilization) }
}

fn periods_of(rule: Rule) -> Vec<f64> {
    let spec = Spec { lengths: Lengths::Periods(rule), ..spec(20, 6.5, Method::UUniFastDiscard) };
    let sets = (0..200).map(|seed| generate(&spec, seed).unwrap());
    sets.flat_map(|set| set.tasks().to_vec()).map(|task| task.period().unwrap().as_ms_f64()).collect()
}

/// Two-sample Kolmogorov–Smirnov test at a significance level of 0.001.
fn assert_same_distribution(mut a: Vec<f64>, mut b: Vec<f64>, what: &str) {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let below = |sorted: &[f64], x: f64| sorted.partition_point(|value| *value <= x) as f64 / sorted.len() as f64;
    let gap = a.iter().chain(&b).map(|x| (below(&a, *x) - below(&b, *x)).abs()).fold(0.0, f64::max);
    let critical = 1.95 * ((a.len() + b.len()) as f64 / (a.len() * b.len()) as f64).sqrt();
    assert!(gap < critical, "{what}: {gap} is not below {critical}");
}

fn share_below(values: &[f64], bound: f64) -> f64 {
    values.iter().filter(|value| **value < bound).count() as f64 / values.len() as f64
}

#[test]
fn utilization_is_as_asked() {
    for method in [Method::UUniFastDiscard, Method::RandFixedSum] {
        for seed in 0..200 {
            let set = generate(&spec(20, 6.5, method.clone()), seed).unwrap();
            assert!((set.utilization() - 6.5).abs() < 1e-2);
            assert!(set.tasks().iter().all(|task| task.utilization() <= 1.0));
        }
    }
}

#[test]
fn periods_are_distributed_as_they_claim() {
    let (low, high) = (Time::from_ms(10), Time::from_ms(100));
    let log = periods_of(Rule::LogUniform(low, high));
    // Log-uniform over one decade: half of the mass lies below √10 times the lower bound.
    assert!((share_below(&log, 31.62) - 0.5).abs() < 0.02 && (share_below(&log, 17.78) - 0.25).abs() < 0.02);
    let uniform = periods_of(Rule::Uniform(low, high));
    assert!((share_below(&uniform, 55.0) - 0.5).abs() < 0.02 && (share_below(&uniform, 32.5) - 0.25).abs() < 0.02);
    let listed = periods_of(Rule::List(vec![low, high]));
    assert!((share_below(&listed, 50.0) - 0.5).abs() < 0.02 && listed.iter().all(|ms| *ms == 10.0 || *ms == 100.0));
    let harmonic = periods_of(Rule::Harmonic(low, high));
    assert!(harmonic.iter().all(|ms| [10.0, 20.0, 40.0, 80.0].contains(ms)));
    assert!((share_below(&harmonic, 15.0) - 0.25).abs() < 0.02);
}

/// Both methods draw from the same uniform distribution.
#[test]
fn rand_fixed_sum_is_as_uniform_as_uunifast_discard() {
    for (n, total) in [(3, 1.5), (4, 0.8), (5, 2.2), (6, 3.0)] {
        let mut rng = Pcg64::seed_from_u64(9);
        let mut first = |method| {
            let spec = spec(n, total, method);
            (0..30_000).map(|_| draw_shares(&spec, &mut rng).unwrap()[0]).collect::<Vec<f64>>()
        };
        let (fixed, discard) = (first(Method::RandFixedSum), first(Method::UUniFastDiscard));
        assert_same_distribution(fixed, discard, &format!("n = {n}, total {total}"));
    }
}

#[test]
fn rand_fixed_sum_reaches_full_load_and_the_impossible_is_refused() {
    let full = generate(&spec(8, 7.95, Method::RandFixedSum), 1).unwrap();
    assert!((full.utilization() - 7.95).abs() < 1e-2);
    assert!(matches!(generate(&spec(8, 8.5, Method::RandFixedSum), 1), Err(GenerateError::TooMuch { .. })));
    let hard = generate(&spec(40, 39.9, Method::UUniFastDiscard), 1);
    assert!(matches!(hard, Err(GenerateError::TooManyDiscards { .. })));
}

#[test]
fn one_seed_is_one_set() {
    let draw = |seed| generate(&spec(10, 3.0, Method::RandFixedSum), seed).unwrap();
    assert_eq!(draw(4), draw(4));
    assert_ne!(draw(4), draw(5));
}

#[test]
fn capped_sharing_is_uniform_and_keeps_the_caps() {
    // The reference draws without caps and discards what exceeds one.
    for (caps, total) in [(vec![0.9, 0.3, 0.5], 1.1), (vec![0.4; 4], 1.3), (vec![0.2, 0.9, 0.9, 0.6, 0.1], 0.9)] {
        let mut rng = Pcg64::seed_from_u64(5);
        let spec = spec(caps.len(), total, Method::Capped(caps.clone()));
        let drawn: Vec<Vec<f64>> = (0..6_000).map(|_| draw_shares(&spec, &mut rng).unwrap()).collect();
        let mut kept = Vec::new();
        while kept.len() < 20_000 {
            let shares = shares::uunifast(caps.len(), total, &mut rng);
            if shares.iter().zip(&caps).all(|(share, cap)| share <= cap) {
                kept.push(shares);
            }
        }
        for shares in &drawn {
            assert!((shares.iter().sum::<f64>() - total).abs() < 1e-9);
            assert!(
                shares.iter().zip(&caps).all(|(share, cap)| *share >= -1e-12 && *share <= cap + 1e-9),
                "{shares:?}"
            );
        }
        for task in 0..caps.len() {
            let of = |sets: &[Vec<f64>]| sets.iter().map(|shares| shares[task]).collect();
            assert_same_distribution(of(&drawn), of(&kept), &format!("caps {caps:?}, task {task}"));
        }
        // The joint distribution must agree as well: compare the sum of the first two.
        let two = |sets: &[Vec<f64>]| sets.iter().map(|shares| shares[0] + shares[1]).collect();
        assert_same_distribution(two(&drawn), two(&kept), "sum of two");
    }
}

#[test]
fn caps_of_one_are_no_caps() {
    for (n, total) in [(6, 2.0), (60, 20.0), (60, 2.0), (12, 11.0)] {
        let mut rng = Pcg64::seed_from_u64(2);
        let mut first = |method, draws| {
            let spec = spec(n, total, method);
            (0..draws).map(|_| draw_shares(&spec, &mut rng).unwrap()[n / 2]).collect::<Vec<f64>>()
        };
        let (fixed, capped) = (first(Method::RandFixedSum, 2_000), first(Method::Capped(vec![1.0]), 300));
        assert_same_distribution(fixed, capped, &format!("n = {n}, total {total}"));
    }
    let too_much = generate(&spec(4, 2.0, Method::Capped(vec![0.4])), 1);
    assert!(matches!(too_much, Err(GenerateError::TooMuch { most: 1.6, .. })), "{too_much:?}");
    assert!(matches!(generate(&spec(4, 1.0, Method::Capped(vec![0.4; 3])), 1), Err(GenerateError::Invalid(_))));
}

#[test]
fn named_distributions_have_their_means_and_bounds() {
    // Means. Uniform: the middle. Exponential, truncated at 1: m − 1/(e^(1/m) − 1). Bimodal: the weighted middles.
    let exponential = |mean: f64| mean - 1.0 / (1.0 / mean).exp_m1();
    let bimodal = |heavy: f64| (heavy * 0.7 + (9.0 - heavy) * 0.2505) / 9.0;
    let means = [0.0505, 0.25, 0.7, exponential(0.1), exponential(0.25), exponential(0.5)];
    let means = means.into_iter().chain([bimodal(1.0), bimodal(3.0), bimodal(5.0)]);
    for (name, mean) in Unc::NAMES.into_iter().zip(means) {
        let mut rng = Pcg64::seed_from_u64(3);
        let draws: Vec<f64> = (0..40_000).map(|_| Unc::from_name(name).unwrap().draw(&mut rng)).collect();
        let drawn = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((drawn - mean).abs() < 0.005, "{name}: {drawn}, not {mean}");
        assert!(draws.iter().all(|share| (0.0..=1.0).contains(share)));
        let spec = Spec { tasks: None, ..spec(1, 4.2, Method::Unc(Unc::from_name(name).unwrap())) };
        let set = generate(&spec, 8).unwrap();
        assert!((set.utilization() - 4.2).abs() < 0.01 && set.tasks().len() > 4, "{name}: {}", set.tasks().len());
    }
}

#[test]
fn heavy_tails_and_given_execution_times() {
    let pareto = periods_of(Rule::Pareto(2.0, Time::from_ms(10)));
    // P(X > x) = (10/x)².
    for (bound, above) in [(14.142, 0.5), (20.0, 0.25), (100.0, 0.01)] {
        let share = 1.0 - share_below(&pareto, bound);
        assert!((share - above).abs() < 0.02, "{share} above {bound}");
    }
    let rule = Rule::Uniform(Time::from_ms(10), Time::from_ms(50));
    let spec = Spec { lengths: Lengths::Wcets(rule), ..spec(20, 6.5, Method::RandFixedSum) };
    let sets: Vec<TaskSet> = (0..200).map(|seed| generate(&spec, seed).unwrap()).collect();
    let wcets: Vec<f64> = sets.iter().flat_map(|set| set.tasks()).map(|task| task.wcet.as_ms_f64()).collect();
    assert!((share_below(&wcets, 30.0) - 0.5).abs() < 0.02 && (share_below(&wcets, 20.0) - 0.25).abs() < 0.02);
    assert!(wcets.iter().all(|ms| (10.0..=50.0).contains(ms)));
    assert!(sets.iter().all(|set| (set.utilization() - 6.5).abs() < 1e-2));
}

#[test]
fn deadlines_criticality_values_bursts_and_modes_are_as_asked() {
    let burst = BurstSpec {
        jobs: 10,
        deadline: Time::from_ms(10),
        every: Time::from_ms(20),
        until: Time::from_secs(10),
        utilization: 1.2,
    };
    let spec = Spec {
        deadlines: Deadlines::Slack(0.5, 1.0),
        bcet: 0.2,
        critical: Critical { share: 0.3, factor: 2.0, overrun: 0.1 },
        values: (1.0, 9.0),
        burst: Some(burst),
        modes: vec![("low".into(), Time::ZERO, 4.0), ("high".into(), Time::from_secs(5), 9.0)],
        ..spec(20, 8.0, Method::RandFixedSum)
    };
    let set = generate(&spec, 1).unwrap();
    let (peak, tasks) = set.tasks().split_last().unwrap();
    assert_eq!(tasks.iter().filter(|task| task.criticality > 0).count(), 6);
    for task in tasks {
        let (period, wcet) = (task.period().unwrap(), task.wcet);
        assert!(task.deadline <= period && task.deadline.0 + 1_000 >= wcet.0 + (period - wcet).0 / 2);
        assert!((task.bcet.0 as f64 / wcet.0 as f64 - 0.2).abs() < 0.01);
        assert_eq!(task.wcet_high, (task.criticality > 0).then_some(wcet * 2));
        assert!((1.0..=9.0).contains(&task.value));
    }
    assert!((peak.wcet.0 as f64 * 10.0 / 20e6 - 1.2).abs() < 1e-6 && peak.deadline == Time::from_ms(10));
    assert!((set.modes()[0].work - 0.5).abs() < 1e-3 && (set.modes()[1].work - 1.125).abs() < 1e-3);
    let impossible = Spec { burst: Some(BurstSpec { utilization: 30.0, ..burst }), ..spec };
    assert!(matches!(generate(&impossible, 1), Err(GenerateError::Invalid(_))));
}

#[test]
fn waters_sets_have_the_published_periods_and_times() {
    let spec = Spec { tasks: None, ..spec(1, 3.0, Method::Waters2015) };
    let sets: Vec<TaskSet> = (0..50).map(|seed| generate(&spec, seed).unwrap()).collect();
    for set in &sets {
        assert!((set.utilization() - 3.0).abs() < 1e-3);
        assert!(set.tasks().iter().all(|task| task.utilization() <= 1.0 && task.bcet <= task.acet.unwrap()));
        assert!(set.tasks().len() > 40, "about ten tasks per core: {}", set.tasks().len());
    }
    let few = generate(&Spec { tasks: Some(12), ..spec.clone() }, 4).unwrap();
    assert!((8..=18).contains(&few.tasks().len()), "{}", few.tasks().len());
    // Every period of the table occurs, and common periods have many more tasks.
    let of = |ms: u64| {
        let tasks = sets.iter().flat_map(|set| set.tasks());
        tasks.filter(|task| task.period() == Some(Time::from_ms(ms))).count()
    };
    assert!([1, 2, 5, 10, 15, 20, 50, 100, 200, 1000].into_iter().all(|ms| of(ms) > 0));
    assert!(of(10) > 3 * of(1) && of(20) > 3 * of(5) && of(100) > 3 * of(50));
}

#[test]
fn what_would_take_forever_is_refused() {
    let large = generate(&spec(100_000, 8.0, Method::RandFixedSum), 1).unwrap();
    assert!(large.tasks().len() == 100_000);
    for method in [Method::Unc(Unc::from_name("exp-heavy").unwrap()), Method::Waters2015] {
        let endless = generate(&Spec { tasks: None, ..spec(1, 1e300, method) }, 1);
        assert!(matches!(endless, Err(GenerateError::Invalid(_))), "{endless:?}");
    }
}
