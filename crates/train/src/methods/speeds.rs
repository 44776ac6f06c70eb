//! Jobs at speeds: what Q-learning needs of a network that chooses how fast each job runs.
//!
//! A choice is a list of (row, speed) pairs, where 0 is full speed. The best choice takes each job at its best speed.

use temponet::stages::best_speed;
use temponet_grad::{Device, Tape};

use crate::replay_buffer::Transition;
use crate::sample::Batch;
use crate::tape_network::TapeOutput;

/// Q-values of all rows of some states, each job row at its best speed.
pub(crate) struct AtBestSpeed {
    pub q: Vec<f32>,
    /// Speed of each job row.
    speeds: Vec<u8>,
}

impl AtBestSpeed {
    /// Reads the outputs of all rows of a batch. The speeds are those of `chosen`, or else the best ones by these
    /// outputs.
    pub(crate) fn of<D: Device>(
        tape: &mut Tape<'_, D>,
        output: &TapeOutput,
        batch: &Batch<'_>,
        chosen: Option<&AtBestSpeed>,
    ) -> AtBestSpeed {
        let mut q = tape.values(output.q);
        let gains: Vec<Vec<f32>> = output.gains.iter().map(|gains| tape.values(*gains)).collect();
        let mut speeds = Vec::with_capacity(batch.job_places.len());
        for (job, row) in batch.job_places.iter().enumerate() {
            let (speed, gain) = match chosen.map(|chosen| chosen.speeds[job]) {
                Some(0) => (0, 0.0),
                Some(speed) => (speed, gains[usize::from(speed) - 1][job]),
                None => best_speed(gains.iter().map(|gains| gains[job])),
            };
            q[*row as usize] += gain;
            speeds.push(speed);
        }
        AtBestSpeed { q, speeds }
    }
}

/// Returns the row and the speed of each job that ran.
fn runs(transition: &Transition) -> impl Iterator<Item = (u32, u8)> {
    let speeds = transition.speeds.iter().copied().chain(std::iter::repeat(0));
    transition.chosen.iter().copied().zip(speeds)
}

/// Returns the different (row, speed) pairs of a choice in ascending order: jobs with equal tokens share a row.
fn distinct_runs(transition: &Transition) -> (Vec<u32>, Vec<u8>) {
    let mut all: Vec<(u32, u8)> = runs(transition).collect();
    all.sort_unstable();
    all.dedup();
    all.into_iter().unzip()
}

/// Rows of some transitions whose outputs are needed: those that ran.
pub struct NeededRuns {
    /// Rows of each transition.
    pub rows: Vec<Vec<u32>>,
    /// Speed of each of those rows.
    pub speeds: Vec<Vec<u8>>,
    /// Rows that ran, numbered from 1 in the order of those rows, after the idle row.
    pub chosen: Vec<Vec<u32>>,
}

impl NeededRuns {
    /// Finds the rows that ran.
    pub fn of(transitions: &[&Transition]) -> NeededRuns {
        let (rows, speeds): (Vec<Vec<u32>>, Vec<Vec<u8>>) =
            transitions.iter().map(|transition| distinct_runs(transition)).unzip();
        let renumber = |((transition, rows), speeds): ((&&Transition, &Vec<u32>), &Vec<u8>)| -> Vec<u32> {
            let at = |run: (u32, u8)| {
                let both = rows.iter().zip(speeds);
                1 + both.take_while(|(row, speed)| (**row, **speed) < run).count() as u32
            };
            runs(transition).map(at).collect()
        };
        let chosen = transitions.iter().zip(&rows).zip(&speeds).map(renumber).collect();
        NeededRuns { rows, speeds, chosen }
    }
}
