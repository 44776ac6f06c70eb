//! Contract: Adam solves problems whose solutions are known.

use temponet_grad::{Adam, AdamSettings, Cpu, Tape, Tensors};

#[test]
fn the_first_step_in_single_precision_is_the_whole_rate() {
    let mut device = Cpu::default();
    let mut parameters = Tensors::default();
    let id = parameters.add(&mut device, "x", 1, 1, &[0.0]);
    let mut gradients = parameters.zeros_like(&mut device);
    gradients.set(&mut device, id, &[3.0]);
    let mut adam = Adam::new(&mut device, AdamSettings::default(), &parameters);
    adam.clipped_step(&mut device, 0.01, f64::INFINITY, &mut gradients, &mut parameters);
    assert!((parameters.values(&device, id)[0] / -0.01 - 1.0).abs() < 1e-6);
}

#[test]
fn adam_solves_a_regression_and_clipping_bounds_gradients() {
    let mut device = Cpu::default();
    let mut parameters = Tensors::default();
    let weight = parameters.add(&mut device, "weight", 1, 2, &[0.0, 0.0]);
    let bias = parameters.add(&mut device, "bias", 1, 1, &[0.0]);
    let mut adam = Adam::new(&mut device, AdamSettings::default(), &parameters);
    let x: Vec<f32> = (0..40).map(|k| ((k * 37) % 19) as f32 * 0.1 - 0.9).collect();
    let y: Vec<f32> = x.chunks(2).map(|x| 3.0 * x[0] - 2.0 * x[1] + 0.5).collect();
    let mut gradients = parameters.zeros_like(&mut device);
    for _ in 0..2_000 {
        gradients.clear(&mut device);
        let mut tape = Tape::new(&mut device, &parameters);
        let input = tape.input(20, 2, &x);
        let output = tape.linear(input, weight, Some(bias));
        let loss = tape.regression(output, None, &y, &[0.05; 20]);
        tape.backward([loss], &mut gradients);
        drop(tape);
        let norm = adam.clipped_step(&mut device, 0.02, 0.5, &mut gradients, &mut parameters);
        let values = gradients.ids().flat_map(|id| gradients.values(&device, id));
        let clipped = values.map(|value| f64::from(value * value)).sum::<f64>().sqrt();
        assert!(clipped <= norm.min(0.5) * 1.0001);
    }
    let found = [parameters.values(&device, weight), parameters.values(&device, bias)].concat();
    let close = found.iter().zip([3.0, -2.0, 0.5]).all(|(found, expected)| (found - expected).abs() < 1e-3);
    assert!(close, "{found:?}");
}
