//! Needs of schedulers, and the one place that checks them.
//!
//! Most schedulers run on any system. Some are defined for one core only, cut jobs at times of their own, or rely on
//! cores that are alike. An entry of the catalog lists such needs, and whatever is built from it checks them before it
//! starts, so that no scheduler has to. What depends on more than the system, such as the tokens of a model, is checked
//! by the scheduler itself.

use temponet_task::{NotApplicable, Protocol, Scheduler, System};

use super::options::Options;

/// Something that a system must have or must not have for a scheduler to make sense on it. Texts complete the sentence
/// that begins with the name of the scheduler: "dp-wrap *wraps its shares around identical cores*, but …".
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Need {
    /// One core.
    OneCore,
    /// Cores of the same speed on which every task may run.
    IdenticalCores(&'static str),
    /// Tasks that may run on every core.
    UnboundTasks(&'static str),
    /// Jobs that can be preempted at any time: the scheduler cuts them at times of its own.
    FreePreemption,
    /// Tasks without critical sections.
    NoSharedResources(&'static str),
    /// Tasks of which some come after others.
    Precedence,
    /// Resources that are shared within a part of the cores only. The function returns the part of each task.
    SharingWithinParts(fn(&System, &Options) -> Vec<usize>),
}

impl Need {
    /// Returns why a system does not have what the scheduler called `name` needs.
    pub fn check(&self, name: &str, options: &Options, system: &System) -> Result<(), NotApplicable> {
        self.problem(name, options, system).map_or(Ok(()), |why| Err(NotApplicable(why)))
    }

    fn problem(&self, name: &str, options: &Options, system: &System) -> Option<String> {
        match self {
            Need::OneCore => {
                (system.cores() != 1).then(|| format!("{name} is defined for one core, not for {}", system.cores()))
            }
            Need::IdenticalCores(what_for) => {
                let machine = system.machine();
                let why = match (machine.is_plain(), machine.is_full_speed(), system.bound_task()) {
                    (true, true, _) => return None,
                    (_, true, Some(task)) => format!("task {:?} is bound to some of the cores", task.name),
                    _ => "cores have speeds of their own".into(),
                };
                Some(format!("{name} {what_for}, but {why}"))
            }
            Need::UnboundTasks(what_for) => {
                let task = system.bound_task()?;
                Some(format!("{name} {what_for}, but task {:?} is bound to some cores", task.name))
            }
            Need::FreePreemption => {
                let task = system.limited_task()?;
                Some(format!(
                    "{name} cuts jobs at times of its own, which task {:?} does not allow (preemption)",
                    task.name
                ))
            }
            Need::NoSharedResources(what_for) => {
                let task = system.task_with_sections()?;
                Some(format!(
                    "{name} {what_for}, but task {:?} has critical sections, in which it can have to wait for others",
                    task.name
                ))
            }
            Need::Precedence => {
                let is_independent = system.tasks().iter().all(|task| task.after.is_empty());
                is_independent.then(|| "it is for tasks that come after each other, and none does".into())
            }
            // Without inheritance, a job that waits runs nothing in its place, wherever that is.
            Need::SharingWithinParts(_) if system.protocol() == Protocol::None => None,
            Need::SharingWithinParts(part_of_task) => {
                let (one, other, resource) = system.shared_across(&part_of_task(system, options))?;
                Some(format!(
                    "tasks {:?} and {:?} share {resource:?} but are on different cores, where neither inherits from the other",
                    one.name, other.name
                ))
            }
        }
    }
}

/// A scheduler whose needs are checked before it starts.
pub(super) struct Checked {
    inner: Box<dyn Scheduler>,
    name: String,
    needs: &'static [Need],
    options: Options,
}

impl Checked {
    pub fn new(inner: Box<dyn Scheduler>, name: &str, needs: &'static [Need], options: &Options) -> Checked {
        Checked { inner, name: name.into(), needs, options: options.clone() }
    }
}

impl temponet_task::Wrapper for Checked {
    type Inner = dyn Scheduler;

    fn inner(&self) -> &Self::Inner {
        &*self.inner
    }

    fn inner_mut(&mut self) -> &mut Self::Inner {
        &mut *self.inner
    }

    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.needs.iter().try_for_each(|need| need.check(&self.name, &self.options, system))?;
        (*self.inner).start(system)
    }
}

#[cfg(test)]
mod tests {
    use temponet_task::{CoreId, CoreSet, Preemption, ResourceId, Section, Task, TaskSet, Time};

    use super::*;
    use crate::catalog::{all, build};

    fn two() -> TaskSet {
        let ms = Time::from_ms;
        TaskSet::new("two", vec![Task::periodic("a", ms(10), ms(2)), Task::periodic("b", ms(20), ms(3))], 2)
    }

    fn refused(scheduler: &str, set: &TaskSet) -> String {
        build(scheduler).unwrap().start(&set.system).err().map(|why| why.to_string()).unwrap_or_default()
    }

    #[test]
    fn a_scheduler_says_what_it_needs() {
        assert_eq!(refused("d-over", &two()), "d-over is defined for one core, not for 2");
        assert_eq!(refused("hlfet", &two()), "it is for tasks that come after each other, and none does");
        let mut whole = two();
        whole.system.tasks_mut()[1].preemption = Preemption::None;
        assert_eq!(
            refused("lre-tl", &whole),
            "lre-tl cuts jobs at times of its own, which task \"b\" does not allow (preemption)"
        );
        let mut bound = two();
        bound.system.tasks_mut()[0].cores = CoreSet::of([CoreId(1)]);
        let (rr, er_pd2) = (refused("rr", &bound), refused("er-pd2", &bound));
        assert_eq!(rr, "rr gives turns on whichever core is free, but task \"a\" is bound to some cores");
        assert!(er_pd2.ends_with("from quantum to quantum, but task \"a\" is bound to some of the cores"), "{er_pd2}");
        let mut sharing = two();
        sharing.system.set_resources(vec!["bus".into()]);
        for task in sharing.system.tasks_mut().iter_mut() {
            task.sections = vec![Section { resource: ResourceId(0), at: Time::ZERO, length: Time::from_us(10) }];
        }
        let (run, apart) = (refused("run", &sharing), refused("p-edf:fit=worst", &sharing));
        assert!(run.starts_with("run runs jobs at times of its own, but task \"a\" has critical sections"), "{run}");
        assert!(apart.contains("share \"bus\" but are on different cores"), "{apart}");
        assert_eq!(refused("p-edf", &sharing), "", "both tasks fit one core");
        assert_eq!(refused("c-edf", &sharing), "", "both cores are one cluster");
    }

    #[test]
    fn plain_sets_have_what_most_schedulers_need() {
        let refusing: Vec<&str> =
            all().into_iter().map(|entry| &*entry.name).filter(|name| !refused(name, &two()).is_empty()).collect();
        assert_eq!(refusing, ["d-over", "edf-chain", "hlfet", "egs"]);
    }
}
