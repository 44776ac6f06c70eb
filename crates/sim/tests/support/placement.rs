//! Who gets which core in the naive simulator.

use temponet_task::{CoreId, Protocol, TaskSet, Time};

use super::{Naive, NaiveJob};

impl Naive<'_> {
    /// Puts the best jobs of an order on cores. Jobs that hold their cores stay; a job that waits for another one is
    /// replaced by that one, if the protocol says so.
    pub(super) fn place(&mut self, order: Vec<usize>) {
        let set = self.set;
        let is_plain = set.system.machine().is_plain();
        let held: Vec<usize> = (0..self.jobs.len()).filter(|index| self.jobs[*index].held).collect();
        let mut runners: Vec<usize> = Vec::new();
        for index in order {
            let is_full = runners.len() + held.len() >= set.cores();
            if is_plain && is_full {
                break;
            }
            if let Some((resource, _)) = self.blocker(index).filter(|_| !is_full) {
                self.jobs[index].waits.get_or_insert((self.now, resource));
            }
            let (mut runner, mut hops) = (Some(index), 0);
            while let Some((_, holder)) = runner.and_then(|runner| self.blocker(runner)) {
                hops += 1;
                runner = Some(holder).filter(|_| set.protocol() != Protocol::None && hops <= self.jobs.len());
            }
            let Some(runner) = runner.filter(|runner| !runners.contains(runner) && !held.contains(runner)) else {
                continue;
            };
            let wanted = self.wanted_resources(runner);
            let is_claimed = |other: &usize| self.wanted_resources(*other).iter().any(|one| wanted.contains(one));
            if !runners.iter().chain(&held).any(is_claimed) {
                runners.push(runner);
            }
        }
        let is_free = |core: &usize| !held.iter().any(|index| self.jobs[*index].core == Some(*core));
        let free: Vec<usize> = (0..set.cores()).filter(is_free).collect();
        let mut search = Search { set, free, jobs: &self.jobs, order: &runners, best: None };
        search.try_all(&mut Vec::new());
        let chosen = search.best.unwrap().1;
        for index in (0..self.jobs.len()).filter(|index| !held.contains(index)) {
            let core = runners.iter().position(|runner| *runner == index).and_then(|at| chosen[at]);
            self.charge(index, core);
            let job = &mut self.jobs[index];
            self.outcome.preemptions += u64::from(job.core.is_some() && core.is_none());
            self.outcome.migrations += u64::from(core.is_some() && job.last_core.is_some() && job.last_core != core);
            (job.core, job.last_core) = (core, core.or(job.last_core));
            job.start = job.start.or(core.map(|_| self.now));
            job.held = core.is_some() && set.tasks()[job.task].preemption.is_limited();
        }
    }
}

impl Naive<'_> {
    /// Adds to a job what it costs to move to a core.
    fn charge(&mut self, index: usize, core: Option<usize>) {
        let (costs, job) = (self.set.costs(), &mut self.jobs[index]);
        let Some(core) = core.filter(|core| job.core != Some(*core)) else { return };
        let thousandths = |cost: Time| 1000 * cost.0 as i64;
        if job.last_core.is_some_and(|last| last != core) {
            job.overhead += thousandths(costs.migration);
        }
        if self.previous[core].replace(job.id()) != Some(job.id()) {
            job.overhead += thousandths(costs.context_switch);
        }
    }
}

/// Quality of an assignment, the greater the better: which jobs run, at which speeds, who stays, and how low the cores
/// are.
type Quality = (Vec<bool>, Vec<u32>, Vec<bool>, Vec<i64>);

struct Search<'a> {
    set: &'a TaskSet,
    /// Cores that no job holds.
    free: Vec<usize>,
    jobs: &'a [NaiveJob],
    /// Jobs to place, best first.
    order: &'a [usize],
    best: Option<(Quality, Vec<Option<usize>>)>,
}

impl Search<'_> {
    /// Tries every way to go on from the `cores` of the first jobs.
    fn try_all(&mut self, cores: &mut Vec<Option<usize>>) {
        // Which jobs run comes first in the quality.
        let runs: Vec<bool> = cores.iter().map(Option::is_some).collect();
        if self.best.as_ref().is_some_and(|(known, _)| runs[..] < known.0[..runs.len()]) {
            return;
        }
        if cores.len() == self.order.len() {
            let jobs = self.jobs;
            let stays = |(job, core): (&usize, &Option<usize>)| core.map(|core| jobs[*job].core == Some(core));
            let quality = (
                runs,
                cores.iter().flatten().map(|core| self.set.machine().speed(CoreId::new(*core)).0).collect(),
                self.order.iter().zip(cores.iter()).filter_map(stays).collect(),
                cores.iter().flatten().map(|core| -(*core as i64)).collect(),
            );
            if self.best.as_ref().is_none_or(|(known, _)| quality > *known) {
                self.best = Some((quality, cores.clone()));
            }
            return;
        }
        let task = &self.set.tasks()[self.jobs[self.order[cores.len()]].task];
        for core in self.free.clone().into_iter().filter(|core| task.cores.contains(CoreId::new(*core))) {
            if !cores.contains(&Some(core)) {
                cores.push(Some(core));
                self.try_all(cores);
                cores.pop();
            }
        }
        cores.push(None);
        self.try_all(cores);
        cores.pop();
    }
}
