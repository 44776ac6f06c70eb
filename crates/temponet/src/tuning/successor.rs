//! Taking over in the middle of a run: any scheduler can follow any other one.

use temponet_task::{Assignment, Event, NotApplicable, Scheduler, System, SystemView};

/// A scheduler that takes over in the middle of a run. It is started when it takes over, and its first view shows every
/// active job as just released, because many schedulers keep the ready jobs by events alone.
pub(super) struct Successor {
    scheduler: Box<dyn Scheduler>,
    /// Whether the scheduler has been told of every active job.
    knows_all: bool,
    events: Vec<Event>,
}

impl Successor {
    /// Starts a scheduler. If the run has begun, the scheduler has seen nothing of it so far.
    pub(super) fn start(
        mut scheduler: Box<dyn Scheduler>,
        system: &System,
        has_begun: bool,
    ) -> Result<Successor, NotApplicable> {
        scheduler.start(system)?;
        Ok(Successor { scheduler, knows_all: !has_begun, events: Vec::new() })
    }

    /// Decides, or only watches, with the events that the scheduler has to be told.
    pub(super) fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment, only_watches: bool) {
        let mut shown = *view;
        if !std::mem::replace(&mut self.knows_all, true) {
            self.announce_all(view);
            shown.events = &self.events;
        }
        match only_watches {
            true => self.scheduler.watch(&shown, assignment),
            false => self.scheduler.decide(&shown, assignment),
        }
    }

    /// Lists every active job as released, in the order of their releases, and as late if its deadline has passed.
    fn announce_all(&mut self, view: &SystemView<'_>) {
        let mut active = view.active.to_vec();
        active.sort_by_key(|id| view.job(*id).tie());
        for id in active {
            self.events.push(Event::Released(id));
            if view.job(id).deadline <= view.now {
                self.events.push(Event::DeadlinePassed(id));
            }
        }
    }

    /// Counters of the scheduler since it took over.
    pub(super) fn counters(&self) -> Vec<(&'static str, u64)> {
        self.scheduler.counters()
    }

    /// Number of ready jobs that the scheduler bears.
    pub(super) fn most_ready(&self) -> usize {
        self.scheduler.most_ready()
    }
}

#[cfg(test)]
mod tests {
    use temponet_sim::generate::{Spec, generate};
    use temponet_sim::{Engine, Unobserved};
    use temponet_task::{Attribute, OnMiss, TaskSet, Time};

    use super::*;
    use crate::stages::{Learned, Tokenizer};
    use crate::tuning::Candidate;
    use crate::{Model, Options};

    /// Candidates whose decisions depend on what happened before: past jobs of a task, a choice that they stick to, or
    /// a mode of theirs.
    const WITH_HISTORY: [&str; 6] = ["d-over", "mk-dbp", "skip-over-bwp", "edf-vd", "cbs", "red"];

    /// Overload with every property that calls for a candidate of its own.
    fn set(cores: usize, on_miss: OnMiss) -> TaskSet {
        let mut set = generate(&Spec::new(9, cores, 1.3 * cores as f64), 4).unwrap();
        set.system.set_on_miss(on_miss);
        (set.system.tasks_mut()[0].criticality, set.system.tasks_mut()[1].mk) = (1, Some((1, 3)));
        set.system.tasks_mut()[2].extra.set(Attribute::Skip, Some(3));
        set.system.tasks_mut()[0].wcet_high = Some(set.tasks()[0].wcet + Time(1));
        set.system.set_servers(vec![temponet_task::Server {
            name: "s".into(),
            budget: Time::from_ms(1),
            period: Time::from_ms(10),
        }]);
        set.system.tasks_mut()[3].extra.set(Attribute::Server, Some(0));
        set
    }

    /// Runs EDF, then lets the candidate take over. Returns whether it then decided as one that was there from the
    /// beginning.
    fn agrees(candidate: &Candidate, set: &TaskSet) -> bool {
        let mut engine = Engine::new(set, 3, Time::from_ms(400));
        let (mut before, mut always) = (temponet_sched::global_edf(), candidate.scheduler().unwrap());
        let mut over = None;
        let (mut assignment, mut expected) = (Assignment::default(), Assignment::default());
        let mut is_same = true;
        [&mut before, &mut always].into_iter().for_each(|one| one.start(engine.system()).unwrap());
        while engine.advance(&mut Unobserved) {
            let view = engine.view();
            [&mut assignment, &mut expected].into_iter().for_each(|one| one.reset(set.cores()));
            always.decide(&view, &mut expected);
            match &mut over {
                None => before.decide(&view, &mut assignment),
                Some(over) => {
                    let over: &mut Successor = over;
                    over.decide(&view, &mut assignment, false);
                    is_same &= assignment.cores() == expected.cores();
                }
            }
            if over.is_none() && engine.now() > Time::from_ms(150) && engine.view().active.len() > set.cores() {
                over = Some(Successor::start(candidate.scheduler().unwrap(), engine.system(), true).unwrap());
            }
            engine.apply(&assignment, &mut Unobserved).unwrap_or_else(|error| panic!("{}: {error}", candidate.name()));
        }
        assert!(over.is_some(), "there was a backlog to take over");
        is_same
    }

    #[test]
    fn every_candidate_can_take_over_in_the_middle_of_a_run() {
        let network = Learned::new(Model::random(Tokenizer::full(), 2).into(), Options::default()).unwrap();
        for (cores, on_miss) in [(1, OnMiss::Abort), (2, OnMiss::Abort), (2, OnMiss::Continue)] {
            let set = set(cores, on_miss);
            let mut candidates = Candidate::classical(&set.system);
            candidates.push(Candidate::Network(Box::new(network.share())));
            assert!(candidates.len() > 15, "{}", candidates.len());
            for candidate in candidates {
                let agrees = agrees(&candidate, &set);
                let name = candidate.name();
                assert!(agrees || WITH_HISTORY.contains(&name), "{name} on {cores} cores, {on_miss:?}");
            }
        }
    }
}
