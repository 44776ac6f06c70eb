//! Lookup of a number's bin without a binary search.
//!
//! The upper bits of the floating-point representation index a table. The table holds a bin that is at most a few bins
//! below the right one; a fixed number of comparisons with the edges does the rest.

/// Bins of non-negative numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bins {
    /// Number at which each bin but the first begins, ascending; then infinity as a sentinel.
    edges: Vec<f64>,
    /// Upper bits of the first positive edge: the first index of the table.
    first: u64,
    /// The table: for upper bits `first + i`, entry `i` is the bin of the least number with these upper bits. Entry 0
    /// also serves all smaller numbers, and the last entry all greater ones.
    starts: Vec<u16>,
    /// Greatest distance from a table entry to the bin of a number that leads to this entry.
    steps: usize,
}

impl Default for Bins {
    /// A single bin.
    fn default() -> Bins {
        Bins::new(Vec::new())
    }
}

/// Shift that leaves the exponent and the eight highest bits of the fraction: 256 table entries per doubling.
const SHIFT: u32 = 44;

impl Bins {
    /// Bins that begin at the given ascending edges; there must be fewer than 65 536 edges.
    pub(crate) fn new(mut edges: Vec<f64>) -> Bins {
        let is_positive = |edge: &&f64| **edge > 0.0;
        let place_of = |edge: Option<&f64>| edge.map_or(0, |edge| edge.to_bits() >> SHIFT);
        let first = place_of(edges.iter().find(is_positive));
        let last = place_of(edges.last().filter(is_positive)).max(first);
        let below = edges.partition_point(|edge| *edge <= 0.0) as u16;
        let start = |place: u64| edges.partition_point(|edge| *edge <= f64::from_bits(place << SHIFT)) as u16;
        // Numbers below the first positive edge lead to entry 0 too, so it holds their bin.
        let starts: Vec<u16> = [below].into_iter().chain((first + 1..=last).map(start)).collect();
        let ends = starts[1..].iter().map(|start| usize::from(*start)).chain([edges.len()]);
        let steps = starts.iter().zip(ends).map(|(start, end)| end - usize::from(*start)).max().unwrap_or(0);
        edges.push(f64::INFINITY);
        Bins { edges, first, starts, steps }
    }

    /// Returns the bin of a number. Its control flow does not depend on the number, so there are no branch
    /// mispredictions.
    pub(crate) fn of(&self, value: f64) -> u16 {
        let place = (value.to_bits() >> SHIFT).saturating_sub(self.first) as usize;
        let mut bin = usize::from(self.starts[place.min(self.starts.len() - 1)]);
        for _ in 0..self.steps {
            bin += usize::from(self.edges[bin] <= value);
        }
        bin as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stages::Binning;

    #[test]
    fn the_same_bin_as_by_searching() {
        let binnings = [
            Binning::Uniform { width: 0.25 },
            Binning::Log { first: 0.05, last: 200.0 },
            Binning::Fitted { edges: vec![-1.0, 0.0, 1e-9, 1.0, 1.0 + 1e-12, 77.0, 1e9] },
            Binning::Fitted { edges: vec![] },
        ];
        for (binning, unit) in binnings.iter().flat_map(|binning| [(binning, 1.0), (binning, 983_211.0)]) {
            let edges: Vec<f64> = binning.edges(128).iter().map(|edge| edge * unit).collect();
            let bins = Bins::new(edges.clone());
            let near = edges.iter().flat_map(|edge| [edge.next_down(), *edge, edge.next_up()]);
            let far = (0..5_000).map(|k| f64::from(k * k) * 3e-5 * unit).chain([0.0, 1e300]);
            for value in near.chain(far).filter(|value| *value >= 0.0) {
                let expected = edges.partition_point(|edge| *edge <= value);
                assert_eq!(usize::from(bins.of(value)), expected, "{value} in {binning:?}");
            }
        }
    }
}
