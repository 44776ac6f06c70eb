//! Latency of a decision over the C interface beside one over the Rust library, in the same process, decision by
//! decision in turn: `cargo run --release --example latency [-- SCHEDULER …]`.
//!
//! Both are given the same reports and must decide the same. The C functions are called by pointers that the compiler
//! cannot see through, as a C program calls them. The first of the two alternates, because it finds the caches colder.
#![allow(unsafe_code, reason = "calls of the C interface")]

use std::ffi::CString;
use std::hint::black_box;
use std::ptr::null_mut;
use std::time::Instant;

use temponet::{Model, ReadyJobs, Scheduler, TaskId, TaskSet, Time};
use temponet_c::*;
use temponet_formats::Format;
use temponet_lab::roster::Roster;

type Decide = unsafe extern "C" fn(tn_ready, *mut tn_core, usize, *mut tn_decision) -> tn_result;

/// Tasks of ten periods on two cores, whose utilization is 1.8.
fn text(tasks: u64) -> String {
    let mut text = String::from("cores = 2\n");
    for task in 0..tasks {
        let period = 10_000 + 5_000 * (task % 10);
        let wcet = period * 18 / 10 / tasks;
        text += &format!("[[task]]\nname = \"t{task}\"\nperiod = \"{period}us\"\nwcet = \"{wcet}us\"\n");
    }
    text
}

/// Medians of the latencies in Rust and in C, in nanoseconds, and the median of their differences.
fn measure(set: &TaskSet, text: &str, scheduler: &str) -> Result<(u64, u64, i64), Box<dyn std::error::Error>> {
    let mut own: Box<dyn Scheduler> = Roster::with(Model::built_in()?).build(scheduler)?;
    let mut ready = ReadyJobs::new(set.system.clone())?;
    ready.start(&mut *own)?;
    let (mut c_set, mut c_ready) = (tn_set { value: 0 }, tn_ready { value: 0 });
    let name = CString::new(scheduler)?;
    let decide: Decide = black_box(tn_ready_decide);
    // SAFETY: all pointers are those of values here.
    let (parsed, made) = unsafe {
        let parsed = tn_set_parse(text.as_ptr().cast(), text.len(), 1, std::ptr::null(), &mut c_set);
        (parsed, tn_ready_new(c_set, name.as_ptr(), tn_model { value: 0 }, &mut c_ready))
    };
    assert_eq!((parsed, made), (tn_result::Ok, tn_result::Ok));
    let idle = tn_core { job: tn_job { of: 0, value: 0 }, task: 0, speed: 0 };
    let mut cores = vec![idle; set.cores()];
    let mut decision = tn_decision { next_ns: 0, stopped: 0, late: 0, cores: 0 };
    let mut running: Vec<(temponet::JobHandle, tn_job)> = Vec::new();
    let (mut in_rust, mut over_c, mut gaps) = (Vec::new(), Vec::new(), Vec::new());
    for step in 0..12_000u64 {
        let now = Time::from_us(500 * step);
        ready.advance(now)?;
        assert_eq!(tn_ready_advance(c_ready, now.0), tn_result::Ok);
        for (handle, job) in running.drain(..) {
            if ready.job(handle).is_some_and(|job| job.executed >= job.wcet) {
                ready.complete(handle)?;
                // SAFETY: the pointer is null.
                assert_eq!(unsafe { tn_ready_complete(c_ready, job, null_mut()) }, tn_result::Ok);
            }
        }
        for task in 0..set.tasks().len() {
            if set.tasks()[task].period().is_some_and(|period| now.0.is_multiple_of(period.0)) {
                ready.release(TaskId::new(task))?;
                let mut job = idle.job;
                // SAFETY: the pointer is that of a job.
                assert_eq!(unsafe { tn_ready_release(c_ready, task, &mut job) }, tn_result::Ok);
            }
        }
        let mut rust_took = 0;
        let mut c_took = 0;
        for turn in 0..2 {
            if (turn + step) % 2 == 0 {
                let begin = Instant::now();
                black_box(ready.decide(&mut *own)?);
                rust_took = begin.elapsed().as_nanos() as u64;
            } else {
                let begin = Instant::now();
                // SAFETY: the buffers are as long as they are said to be.
                let result = unsafe { decide(c_ready, cores.as_mut_ptr(), cores.len(), &mut decision) };
                c_took = begin.elapsed().as_nanos() as u64;
                assert_eq!(result, tn_result::Ok);
            }
        }
        let mut on_cores: Vec<_> =
            ready.iter().filter_map(|(handle, job)| Some((job.running.then_some(job.last_core)?, handle))).collect();
        on_cores.sort_by_key(|(core, _)| *core);
        let mut busy = on_cores.into_iter();
        for core in cores.iter().filter(|core| core.job.of != 0) {
            let (_, handle) = busy.next().ok_or("C runs more jobs than Rust")?;
            assert_eq!(handle.to_bits(), core.job.value, "{scheduler}: the same decisions");
            running.push((handle, core.job));
        }
        assert!(busy.next().is_none(), "Rust runs more jobs than C");
        // The first decisions fill memory and caches.
        if step >= 2_000 {
            in_rust.push(rust_took);
            over_c.push(c_took);
            gaps.push(c_took as i64 - rust_took as i64);
        }
    }
    assert_eq!([tn_ready_free(c_ready), tn_set_free(c_set)], [tn_result::Ok; 2]);
    in_rust.sort_unstable();
    over_c.sort_unstable();
    gaps.sort_unstable();
    let middle = in_rust.len() / 2;
    Ok((in_rust[middle], over_c[middle], gaps[middle]))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut schedulers: Vec<String> = std::env::args().skip(1).collect();
    if schedulers.is_empty() {
        schedulers = ["edf", "llf", "shield:srpt", "temponet-unshielded"].map(String::from).to_vec();
    }
    println!("scheduler            tasks   Rust ns      C ns   C / Rust   C − Rust ns");
    for scheduler in &schedulers {
        for tasks in [8, 64] {
            let text = text(tasks);
            let set = temponet_formats::parse(&text, Format::Toml, std::path::Path::new("latency"))?.set;
            let (rust, c, gap) = measure(&set, &text, scheduler)?;
            let ratio = c as f64 / rust as f64;
            println!("{scheduler:20} {tasks:>5} {rust:>9} {c:>9} {ratio:>10.2} {gap:>13}");
            if gap > 1_000 {
                return Err(format!("{scheduler}: a decision takes {gap} ns longer over the C interface").into());
            }
        }
    }
    Ok(())
}
