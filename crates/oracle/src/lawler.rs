//! Lawler's dynamic program: the greatest number of jobs that one core can complete in time, in polynomial time for
//! every instance.
//!
//! Reference: Lawler, A dynamic programming algorithm for preemptive scheduling of a single machine to minimize the
//! number of late jobs, Annals of Operations Research 26, 1990. It takes O(n³k²) steps for n jobs with k distinct
//! releases, so it serves for short runs and as a check of the faster search in `labels.rs`.

use super::OracleJob;

const NEVER: i128 = i128::MAX / 4;

/// Returns the greatest number of jobs that one core can complete in time.
pub fn lawler(jobs: &[OracleJob]) -> usize {
    let mut jobs: Vec<(i128, i128, i128)> = jobs
        .iter()
        .filter(|job| job.release + job.execution <= job.deadline)
        .map(|job| (i128::from(job.release.0), i128::from(job.execution.0), i128::from(job.deadline.0)))
        .collect();
    jobs.sort_by_key(|(_, _, deadline)| *deadline);
    let mut releases: Vec<i128> = jobs.iter().map(|job| job.0).collect();
    releases.sort_unstable();
    releases.dedup();
    let (n, k) = (jobs.len(), releases.len());
    // ends[i][w]: the least completion time of w of the jobs seen so far, among those released at releases[i] or later.
    let mut ends = vec![vec![NEVER; n + 1]; k + 1];
    ends.iter_mut().for_each(|row| row[0] = -NEVER);
    for (count, (release, work, deadline)) in jobs.iter().copied().enumerate() {
        let own = releases.partition_point(|other| *other < release);
        let mut next = ends.clone();
        // busy[e][i][w]: the least work of w such jobs that lies between `release` and releases[e].
        let busy: Vec<Vec<Vec<i128>>> = (0..k)
            .map(|e| if e > own { busy_before(&ends, &releases, release, e, count) } else { Vec::new() })
            .collect();
        for i in 0..=own {
            for w in 1..=count + 1 {
                let mut best = ends[i][w];
                if ends[i][w - 1] < NEVER {
                    best = best.min(within(release.max(ends[i][w - 1]) + work, deadline));
                }
                for e in own + 1..k {
                    for last in 1..w {
                        let (end, before) = (ends[e][last], busy[e][i][w - 1 - last]);
                        if end < NEVER && before < NEVER {
                            let rest = (work - (releases[e] - release) + before).max(0);
                            best = best.min(within(end + rest, deadline));
                        }
                    }
                }
                next[i][w] = best;
            }
        }
        ends = next;
    }
    ends[0].iter().rposition(|end| *end < NEVER).unwrap_or(0)
}

fn within(end: i128, deadline: i128) -> i128 {
    if end <= deadline { end } else { NEVER }
}

/// `[i][w]`: the least work inside `[release, releases[e]]` of w jobs that are released at releases[i] or later and
/// complete by releases[e].
fn busy_before(ends: &[Vec<i128>], releases: &[i128], release: i128, e: usize, count: usize) -> Vec<Vec<i128>> {
    let mut busy = vec![vec![NEVER; count + 1]; e + 1];
    busy.iter_mut().for_each(|row| row[0] = 0);
    for i in (0..e).rev() {
        for w in 1..=count {
            let mut best = busy[i + 1][w];
            for first in 1..=w {
                let end = ends[i][first];
                if end > releases[e] {
                    continue;
                }
                let after = releases.partition_point(|other| *other < end).min(e);
                let rest = busy[after][w - first];
                if rest < NEVER {
                    best = best.min((end - releases[i].max(release)).max(0) + rest);
                }
            }
            busy[i][w] = best;
        }
    }
    busy
}
