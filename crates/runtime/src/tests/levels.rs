//! Contract of switches on threads: after any sequence of orders, on any number of cores, the chosen job of a core has a
//! higher priority there than every other one that has started. The kernel is asked what the priorities are. Two
//! processors are job cores here, which a run would not allow; the jobs only sleep.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use temponet_task::{OnMiss, Release, Task, TaskId, Time};

use crate::doorbell::{Doorbell, Marks};
use crate::linux::guard::Heart;
use crate::linux::launch::{is_permitted, start_worker};
use crate::linux::threads::{HIGHEST, LOWEST, Machine, Threads};
use crate::linux::usable_cpus;
use crate::linux::worker::{Cell, Work, WorkerPlan};
use crate::platform::{Note, Platform};
use crate::releases::Due;

const JOBS: usize = 7;
const STEPS: usize = 1_500;

/// Real-time priority of a thread of this process.
fn priority(thread: i32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
    // Field 40 of proc_pid_stat(5); the state, field 3, is the first one after the name.
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(37).unwrap().parse().unwrap()
}

#[test]
fn a_chosen_job_is_above_every_rival_of_its_core_after_any_orders() {
    let cpus: Vec<usize> = usable_cpus().into_iter().take(2).collect();
    if let Err(why) = is_permitted() {
        eprintln!("skipped: {why}");
        return;
    }
    if cpus.len() < 2 {
        eprintln!("skipped: one processor");
        return;
    }
    let (doorbell, returned) = (Arc::<Doorbell>::default(), Arc::new(Marks::for_places(JOBS)));
    // A job ends when its bit is set.
    let ends = Arc::new(AtomicU64::new(0));
    let workers = (0..JOBS).map(|slot| {
        let (cell, own) = (Arc::<Cell>::default(), ends.clone());
        let body = Work::Closure(Box::new(move |job| {
            while own.fetch_and(!(1 << slot), Ordering::Relaxed) >> slot & 1 == 0 && !job.expired() {
                std::thread::sleep(Duration::from_micros(200));
            }
        }));
        let (doorbell, returned, on_miss) = (doorbell.clone(), returned.clone(), OnMiss::Continue);
        let plan = WorkerPlan { cell: cell.clone(), slot, doorbell, returned, on_miss, epoch: Arc::default() };
        start_worker(plan, cell, slot, &format!("job {slot}"), body, cpus[0], None).unwrap()
    });
    let workers = workers.collect();
    let machine = Machine { cpus, housekeeping: 0, doorbell, returned, epoch: Arc::default(), heart: Heart::NONE };
    let mut threads = Threads::new(workers, vec![Arc::default(); JOBS], machine);
    let due = |slot: usize| {
        let release = Release::of(&Task::periodic("", Time::from_secs(100), Time::from_secs(1)), Time::ZERO);
        Due { task: TaskId::new(slot), number: 0, release, execution: Time(1) }
    };
    let mut random = 1u64;
    let mut below = |n: usize| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) as usize % n
    };
    // Slots of admitted jobs; which of them have started, and on which core they were last.
    let (mut admitted, mut last) = ([false; JOBS], [None; JOBS]);
    let (mut chosen, mut highest) = (vec![None; 2], 0);
    for step in 0..STEPS {
        while let Some(note) = threads.note() {
            let Note::Done { slot, .. } = note else { panic!("{note:?}") };
            (admitted[slot], last[slot]) = (false, None);
            chosen.iter_mut().filter(|core| **core == Some(slot)).for_each(|core| *core = None);
        }
        let slot = below(JOBS);
        match (admitted[slot], last[slot]) {
            (false, _) => {
                assert_eq!(threads.admit(&due(slot)), Some(slot));
                admitted[slot] = true;
            }
            (true, Some(_)) if below(6) == 0 => {
                ends.fetch_or(1 << slot, Ordering::Relaxed);
            }
            _ => {}
        }
        for core in 0..2 {
            let wanted = below(JOBS);
            if admitted[wanted] && chosen[1 - core] != Some(wanted) && below(3) > 0 {
                chosen[core] = Some(wanted);
            }
        }
        threads.switch(&chosen);
        let on_cores = || chosen.iter().enumerate().filter_map(|(core, wanted)| Some((core, (*wanted)?)));
        on_cores().for_each(|(core, wanted)| last[wanted] = Some(core));
        for (core, wanted) in on_cores() {
            let level = priority(threads.workers[wanted].thread);
            assert!((LOWEST..=HIGHEST).contains(&level), "step {step}: {level}");
            highest = highest.max(level);
            for other in (0..JOBS).filter(|other| *other != wanted && last[*other] == Some(core)) {
                // A job that has returned since sleeps, and its priority says nothing.
                if !threads.workers[other].cell.is_done() {
                    let rival = priority(threads.workers[other].thread);
                    assert!(rival < level, "step {step}, core {core}: {rival} and {level}");
                }
            }
        }
    }
    assert!(highest > HIGHEST - 3, "the levels were used up and begun anew: {highest}");
    drop(threads);
}
