//! What could run instead of the base choice: the choices of other schedulers, and the base choice with one job
//! exchanged.

use temponet_task::{JobId, SystemView, Worths};

use super::Compared;

/// Jobs to run, and those of them that keep their core until they leave.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    pub jobs: Vec<JobId>,
    pub kept: Vec<JobId>,
    /// Jobs that make way for kept ones if the base scheduler would run them.
    pub outward: Vec<JobId>,
}

impl Choice {
    /// Returns a choice of `jobs` in which the `kept` ones are, in place of those that are due last.
    pub fn keeping(view: &SystemView<'_>, mut jobs: Vec<JobId>, kept: &[JobId]) -> Choice {
        insert_kept(view, &mut jobs, kept, &[]);
        Choice { jobs, kept: kept.to_vec(), outward: Vec::new() }
    }

    fn is_same(&self, other: &Choice) -> bool {
        self.jobs.len() == other.jobs.len() && self.jobs.iter().all(|id| other.jobs.contains(id))
    }

    /// Describes the choice as an exchange with `reference`.
    pub fn compared(&self, view: &SystemView<'_>, worths: &Worths, reference: &Choice, gain: f64) -> Compared {
        let inward = without(&self.jobs, &reference.jobs);
        let outward = without(&reference.jobs, &self.jobs);
        let worth = |id: &JobId| worths.of(view.job(*id).criticality, view.job(*id).value);
        let worth = inward.iter().chain(&outward).map(worth).fold(0.0, f64::max);
        Compared { inward, outward, gain, worth }
    }
}

/// Returns the jobs that are not among `others`.
fn without(jobs: &[JobId], others: &[JobId]) -> Vec<JobId> {
    jobs.iter().copied().filter(|id| !others.contains(id)).collect()
}

/// Makes the `kept` jobs run in a choice of the base scheduler: each in place of one in `outward`, or else of the one
/// that is due last.
pub(super) fn insert_kept(view: &SystemView<'_>, jobs: &mut Vec<JobId>, kept: &[JobId], outward: &[JobId]) {
    for id in kept {
        if jobs.contains(id) {
            continue;
        }
        if !view.system.machine().is_plain() {
            // The first job finds a core in any case, and makes way for nobody.
            jobs.insert(0, *id);
            continue;
        }
        if jobs.len() >= view.cores() {
            let due = |id: &JobId| (outward.contains(id), view.job(*id).deadline, view.job(*id).tie());
            let others = (0..jobs.len()).filter(|place| !kept.contains(&jobs[*place]));
            let Some(last) = others.max_by_key(|place| due(&jobs[*place])) else { return };
            jobs.remove(last);
        }
        jobs.push(*id);
    }
}

/// Alternatives to a reference choice.
pub(super) struct Alternatives {
    pub choices: Vec<Choice>,
}

impl Alternatives {
    /// Collects the alternatives to `reference` at a decision: the bare base choice, the choices in `counsels`, and at
    /// most `most` exchanges of one job.
    pub fn of(
        view: &SystemView<'_>,
        reference: &Choice,
        base: Vec<JobId>,
        counsels: &[Vec<JobId>],
        most: usize,
    ) -> Alternatives {
        let mut found = Alternatives { choices: Vec::new() };
        found.add(reference, Choice { jobs: base.clone(), kept: Vec::new(), outward: Vec::new() });
        for counsel in counsels {
            let (kept, outward) = (without(counsel, &base), without(&base, counsel));
            found.add(reference, Choice { jobs: counsel.clone(), kept, outward });
        }
        let supporters = |id: &JobId| counsels.iter().filter(|counsel| counsel.contains(id)).count();
        let could_come = |id: &&JobId| !reference.jobs.contains(id) && !view.job(**id).is_impossible(view.now);
        let mut inward: Vec<JobId> = view.active.iter().filter(could_come).copied().collect();
        // First those that others would run, then those that have run, then the most urgent.
        inward.sort_unstable_by_key(|id| {
            let job = view.job(*id);
            (std::cmp::Reverse(supporters(id)), job.last_core.is_none(), job.slack(view.now).unsigned_abs(), job.tie())
        });
        let mut outward = reference.jobs.clone();
        outward.sort_unstable_by_key(|id| {
            (supporters(id), std::cmp::Reverse(view.job(*id).deadline), view.job(*id).tie())
        });
        let mut left = most;
        for coming in inward {
            for leaving in &outward {
                if left == 0 {
                    return found;
                }
                let jobs = reference.jobs.iter().map(|id| if id == leaving { coming } else { *id }).collect();
                let mut kept: Vec<JobId> = reference.kept.iter().copied().filter(|id| id != leaving).collect();
                kept.push(coming);
                left -= usize::from(found.add(reference, Choice { jobs, kept, outward: vec![*leaving] }));
            }
        }
        found
    }

    /// Adds a choice unless it is the reference or known. Returns whether it was added.
    fn add(&mut self, reference: &Choice, choice: Choice) -> bool {
        let is_new = !choice.is_same(reference) && !self.choices.iter().any(|known| known.is_same(&choice));
        if is_new {
            self.choices.push(choice);
        }
        is_new
    }
}
