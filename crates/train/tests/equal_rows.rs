//! Equal rows of a batch share some work. Outputs and gradients must be those of the samples one by one, in which no
//! two rows are equal.

use temponet::stages::Tokenizer;
use temponet_grad::{AdamSettings, Cpu};
use temponet_infer::Weights;
use temponet_train::{Learner, NeededRowsOf, NetworkShape, Sample, SampleLoss, StepSize};

/// Greatest difference allowed between numbers of about 1.
const CLOSE: f32 = 1e-5;

fn learner(layers: usize) -> Learner<Cpu> {
    let shape = NetworkShape { width: 16, layers, heads: 2, feed_forward: 32, ..NetworkShape::default() };
    // With an epsilon this large, a step with an equally large learning rate moves the weights by their gradients.
    let adam = AdamSettings { epsilon: 1e9, ..AdamSettings::default() };
    Learner::new(Cpu::default(), &Weights::random(shape.architecture(&Tokenizer::paper()), 1), adam)
}

/// Samples with four different tokens each, out of five.
fn samples() -> Vec<Sample> {
    let sample = |place: u16| Sample {
        idle: vec![0, 8],
        tokens: (0..5).filter(|token| *token != place % 5).map(|token| 10 * token).collect(),
        real: Vec::new(),
        counts: vec![1, 2, 1, 1],
        bias: vec![0.0, 0.0, 2f32.ln(), 0.0, 0.0],
        cores: 1,
        past: None,
    };
    (0..7).map(sample).collect()
}

/// Returns the change of the weights by one step.
fn gradients(layers: usize, samples: &[&Sample], wanted: Option<&[&[u32]]>) -> Vec<f32> {
    let mut learner = learner(layers);
    let numbers = |learner: &Learner<Cpu>| -> Vec<f32> {
        let weights = learner.weights();
        weights.architecture.tensors().iter().flat_map(|(name, ..)| weights.tensor(name).to_vec()).collect()
    };
    let before = numbers(&learner);
    let wanted = wanted.map(|rows| NeededRowsOf { rows, speeds: None });
    learner.gradients(samples, wanted, |_, _, _, by_q| {
        by_q.iter_mut().enumerate().for_each(|(row, slope)| *slope = 0.5 - row as f32);
        SampleLoss { by_value: 0.3, ..SampleLoss::default() }
    });
    learner.step(Vec::new(), StepSize { rate: 1e9, clip: f64::INFINITY });
    numbers(&learner).iter().zip(before).map(|(after, before)| after - before).collect()
}

#[test]
fn outputs_are_those_of_the_samples_alone() {
    let samples = samples();
    let all = learner(2).outputs(None, &samples.iter().collect::<Vec<_>>());
    for (place, sample) in samples.iter().enumerate() {
        let alone = learner(2).outputs(None, &[sample]);
        assert!(all.q(place).iter().zip(alone.q(0)).all(|(left, right)| (left - right).abs() < CLOSE));
        assert_eq!(all.q(place).len(), 5);
    }
}

#[test]
fn gradients_are_the_sums_of_those_of_the_samples_alone() {
    let samples = samples();
    for layers in [1, 2] {
        for wanted in [None, Some([2u32])] {
            let rows: Vec<&[u32]> = wanted.iter().cycle().take(samples.len()).map(|rows| &rows[..]).collect();
            let wanted = wanted.is_some().then_some(&rows[..]);
            let all = gradients(layers, &samples.iter().collect::<Vec<_>>(), wanted);
            let mut sum = vec![0.0; all.len()];
            for sample in &samples {
                let alone = gradients(layers, &[sample], wanted.map(|rows| &rows[..1]));
                sum.iter_mut().zip(alone).for_each(|(sum, alone)| *sum += alone);
            }
            let most = all.iter().fold(0.0f32, |most, value| most.max(value.abs()));
            assert!(most > 0.1, "{most}");
            for (left, right) in all.iter().zip(&sum) {
                assert!((left - right).abs() < CLOSE * most, "{left} {right}, {layers} layers");
            }
        }
    }
}
