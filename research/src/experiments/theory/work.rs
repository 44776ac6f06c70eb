//! Statements about the work of sparse attention, by counting scores with the paper's own block and chunk sizes.

use super::{Check, Relation, Settings};
use crate::{Findings, FindingsTable, Unit};
use temponet_lab::stats::power_law;

/// The paper's sizes for `jobs` tokens.
struct Sizes {
    jobs: f64,
    /// Block size, ⌈√N⌉.
    block: f64,
    /// Number of chunks, ⌈ln N⌉.
    chunks: f64,
    /// Tokens in a chunk.
    chunk: f64,
    /// Kept scores per query and block, ⌊log₂ B⌋ + 1.
    kept: f64,
}

impl Sizes {
    fn of(jobs: usize) -> Sizes {
        let jobs = jobs as f64;
        let (block, chunks) = (jobs.sqrt().ceil(), jobs.ln().ceil().max(1.0));
        Sizes { jobs, block, chunks, chunk: (jobs / chunks).ceil(), kept: block.log2().floor() + 1.0 }
    }

    /// Scores kept between chunks, and scores inside chunks: the two terms of the main formula.
    fn terms(&self) -> [f64; 2] {
        [self.jobs * self.kept, self.chunks * self.chunk * self.chunk]
    }

    /// Kept scores by the appendix's count, where a query keeps √N scores of each block of its chunk.
    fn nonzero(&self) -> f64 {
        let kept = self.jobs.sqrt().ceil();
        self.chunks * self.chunk * kept * (self.chunk / self.block).ceil() + self.jobs * (self.chunks - 1.0)
    }
}

/// Numbers of jobs of the paper's measurement.
const MEASURED: [usize; 8] = [10, 20, 50, 100, 200, 300, 400, 600];

pub(super) fn checks(settings: &Settings, findings: &mut Findings) -> Vec<Check> {
    let sizes: Vec<Sizes> = settings.jobs.iter().map(|jobs| Sizes::of(*jobs)).collect();
    add_table(findings);
    // Growth of a count over what is said of it, from the fewest to the most jobs; 1 if the count grows as is said.
    let growth = |of: &dyn Fn(&Sizes) -> f64| match &sizes[..] {
        [first, .., last] => of(last) / of(first),
        _ => f64::NAN,
    };
    let points: Vec<(f64, f64)> = MEASURED.map(|jobs| (jobs as f64, Sizes::of(jobs).terms().iter().sum())).to_vec();
    let [between, inside] = Sizes::of(600).terms();
    vec![
        Check {
            name: "work_exponent",
            statement: "Appendix L: the average complexity is N^1.1 for N from 10 to 600",
            figure: "exponent fitted to N·k + M·C²",
            relation: Relation::AtMost,
            measured: power_law(&points).exponent,
            stated: 1.1,
            amended: None,
        },
        Check {
            name: "work_first_term",
            statement: "Appendix L: of N·k and M·C² the first dominates",
            figure: "first term over second at 600 jobs",
            relation: Relation::AtLeast,
            measured: between / inside,
            stated: 1.0,
            amended: None,
        },
        Check {
            name: "work_kept_scores",
            statement: "Appendix M: the count of kept scores is Θ(N^1.5 / √log N)",
            figure: "growth of the count from the fewest to the most jobs over the growth of this",
            relation: Relation::AtMost,
            measured: growth(&|of| of.nonzero() / (of.jobs.powf(1.5) / of.jobs.ln().sqrt())),
            stated: 1.0,
            amended: Some(("Θ(N² / log N)", growth(&|of| of.nonzero() / (of.jobs.powi(2) / of.jobs.ln())))),
        },
        Check {
            name: "work_equivalent_form",
            statement: "Appendix M: O(NB + NkB) is O(NB + kB²)",
            figure: "growth of the first from the fewest to the most jobs over the growth of the second",
            relation: Relation::AtMost,
            measured: growth(&|of| {
                let Sizes { jobs, block, kept, .. } = of;
                (jobs * block + jobs * kept * block) / (jobs * block + kept * block * block)
            }),
            stated: 1.0,
            amended: None,
        },
    ]
}

fn add_table(findings: &mut Findings) {
    let row = |jobs: usize| {
        let sizes = Sizes::of(jobs);
        let [between, inside] = sizes.terms();
        let counts = [between, inside, sizes.nonzero(), sizes.jobs * sizes.jobs].map(|count| Unit::Number.show(count));
        [jobs.to_string()].into_iter().chain(counts).collect()
    };
    let header = ["jobs", "between chunks, N·k", "inside chunks, M·C²", "the appendix's count", "dense, N²"];
    findings.tables.push(FindingsTable::new("Scores of one head and layer", &header, MEASURED.map(row).to_vec()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_paper() {
        let Sizes { block, chunks, chunk, kept, .. } = Sizes::of(600);
        assert_eq!([block, chunks, chunk, kept], [25.0, 7.0, 86.0, 5.0]);
    }
}
