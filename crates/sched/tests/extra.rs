//! Contract: a scheduler reads those attributes of tasks that its entry in the catalog declares, and no others.

use temponet_sched::catalog::{self, Entry};
use temponet_sim::generate::{Spec, generate};
use temponet_sim::{Recorder, simulate};
use temponet_task::{Attribute, Server, TaskSet, Time};

/// Overload in which tasks state every attribute, or only those that are kept.
fn stating(seed: u64, keeps: impl Fn(Attribute) -> bool) -> TaskSet {
    let mut set = generate(&Spec::new(6, 1, 1.2), seed).unwrap();
    let (budget, period) = (Time::from_ms(2), Time::from_ms(20));
    set.system.set_servers(vec![Server { name: "s".into(), budget, period }]);
    for (number, task) in (0..).zip(set.system.tasks_mut().iter_mut()) {
        for attribute in Attribute::ALL.into_iter().filter(|attribute| keeps(*attribute)) {
            let value = match attribute {
                Attribute::Priority => Some(number * 7 % 5),
                Attribute::Skip => Some(2 + number % 2),
                Attribute::Server => (number == 1).then_some(0),
                _ => Some(1),
            };
            task.extra.set(attribute, value);
        }
    }
    set
}

fn schedule(entry: &Entry, set: &TaskSet) -> Recorder {
    let mut recorder = Recorder::until(Time::NEVER);
    let mut scheduler = catalog::build(&entry.name).unwrap();
    // A set that the scheduler refuses is refused with and without the attributes.
    let _ = simulate(set, 1, Time::from_secs(1), &mut *scheduler, &mut recorder);
    recorder
}

#[test]
fn schedulers_read_what_they_declare() {
    for attribute in Attribute::ALL {
        let is_read = |entry: &&Entry| entry.reads.contains(&attribute);
        let matters = |entry: &Entry| {
            schedule(entry, &stating(1, |_| true)).slices
                != schedule(entry, &stating(1, |other| other != attribute)).slices
        };
        let mut readers = catalog::all().into_iter().filter(is_read);
        assert!(readers.any(matters), "{} makes no difference", attribute.name());
    }
    for entry in catalog::all().into_iter().filter(|entry| entry.kind.is_rule()) {
        for seed in 0..4 {
            let whole = schedule(entry, &stating(seed, |_| true)).slices;
            let declared = schedule(entry, &stating(seed, |attribute| entry.reads.contains(&attribute))).slices;
            assert_eq!(whole, declared, "{} reads what it does not declare", entry.name);
        }
    }
}
