//! The numbers of an index: a network with one hidden layer.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use thiserror::Error;

pub(super) const INPUTS: usize = 13;
const HIDDEN: usize = 12;
pub(super) const OUTPUTS: usize = 4;
/// Numbers of a layer: for each of its nodes one per input, and a bias.
const FIRST: usize = HIDDEN * (INPUTS + 1);

/// Numbers that an index goes by. Cloning shares them.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexWeights {
    numbers: Arc<[f64; IndexWeights::COUNT]>,
}

/// Text or numbers that are no weights of an index.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WeightsProblem {
    /// Not a finite number.
    #[error("line {0} of the weights is not a finite number")]
    NotANumber(usize),
    /// Too few or too many numbers.
    #[error("an index has {most} weights, not {0}", most = IndexWeights::COUNT)]
    Count(usize),
}

impl IndexWeights {
    /// How many numbers there are.
    pub const COUNT: usize = FIRST + OUTPUTS * (HIDDEN + 1);

    /// Returns the weights that come with this crate.
    pub fn learned() -> IndexWeights {
        IndexWeights::parse(include_str!("weights.txt")).unwrap_or_else(|_| IndexWeights::plain())
    }

    /// Returns weights that learning can begin with: due times and lengths count alike, lengths by their medians.
    pub fn plain() -> IndexWeights {
        let mut numbers = [0.0; IndexWeights::COUNT];
        // Layers that are zero stay zero in training; a fixed pattern gives each hidden node something of its own.
        for (place, number) in numbers[..FIRST].iter_mut().enumerate() {
            *number = 0.3 * ((place * 7_919 % 1_009) as f64 / 504.5 - 1.0);
        }
        IndexWeights { numbers: Arc::new(numbers) }
    }

    /// Takes weights from numbers.
    pub fn new(numbers: &[f64]) -> Result<IndexWeights, WeightsProblem> {
        let count = || WeightsProblem::Count(numbers.len());
        let array: [f64; IndexWeights::COUNT] = numbers.try_into().map_err(|_| count())?;
        match array.iter().position(|number| !number.is_finite()) {
            Some(place) => Err(WeightsProblem::NotANumber(place + 1)),
            None => Ok(IndexWeights { numbers: Arc::new(array) }),
        }
    }

    /// Reads weights from text: one number on a line, `#` begins a comment.
    pub fn parse(text: &str) -> Result<IndexWeights, WeightsProblem> {
        let mut numbers = Vec::new();
        for (line, content) in text.lines().enumerate() {
            let content = content.split('#').next().unwrap_or("").trim();
            if !content.is_empty() {
                let number: Option<f64> = content.parse().ok();
                numbers.push(number.filter(|number| number.is_finite()).ok_or(WeightsProblem::NotANumber(line + 1))?);
            }
        }
        IndexWeights::new(&numbers)
    }

    /// Returns the numbers.
    pub fn numbers(&self) -> &[f64] {
        &self.numbers[..]
    }

    /// What the network says.
    pub(super) fn outputs(&self, inputs: &[f64; INPUTS]) -> [f64; OUTPUTS] {
        let (first, second) = self.numbers.split_at(FIRST);
        let mut hidden = [0.0; HIDDEN];
        layer(first, inputs, &mut hidden);
        // A bounded function without an exponential.
        hidden.iter_mut().for_each(|value| *value /= 1.0 + libm::fabs(*value));
        let mut outputs = [0.0; OUTPUTS];
        layer(second, &hidden, &mut outputs);
        outputs
    }
}

/// Applies a layer: for each node the sum of its inputs by its numbers, the last of which is the bias.
fn layer(numbers: &[f64], inputs: &[f64], outputs: &mut [f64]) {
    for (output, node) in outputs.iter_mut().zip(numbers.chunks_exact(inputs.len() + 1)) {
        let (weights, bias) = node.split_at(inputs.len());
        *output = bias[0] + weights.iter().zip(inputs).map(|(weight, input)| weight * input).sum::<f64>();
    }
}

/// As text that [`IndexWeights::parse`] reads.
impl fmt::Display for IndexWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.numbers.iter().try_for_each(|number| writeln!(f, "{number}"))
    }
}
