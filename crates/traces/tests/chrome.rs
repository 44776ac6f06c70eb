//! Contract: traces of our own simulator and of other programs in Chrome's JSON.

use temponet_sim::ChromeTrace;
use temponet_task::{ExecutionModel, Task, TaskSet, Time};

use crate::{Folder, found, task};

#[test]
fn our_own_trace_of_a_simulation_gives_its_jobs() {
    let ms = Time::from_ms;
    let tasks = vec![
        Task::periodic("control", ms(5), ms(2)).with_bcet(ms(1)).with_execution(ExecutionModel::Uniform),
        Task::periodic("planner", ms(50), ms(20)),
    ];
    let set = TaskSet::new("own", tasks, 1);
    let horizon = Time::from_secs(5);
    let mut trace = ChromeTrace::new(&set, horizon, Vec::new()).unwrap();
    let mut scheduler = temponet_sched::build("rm").unwrap();
    temponet_sim::simulate(&set, 1, horizon, &mut *scheduler, &mut trace).unwrap();
    let folder = Folder::new("chrome-own");
    let import = found(&folder.write("trace.json", trace.finish().unwrap()));
    let (control, planner) = (task(&import, "control"), task(&import, "planner"));
    assert_eq!((control.period, planner.period), (ms(5), ms(50)));
    assert_eq!(planner.most, ms(20));
    assert!(control.most <= ms(2) && control.most >= Time(1_980_000), "{control:?}");
    assert!(control.jobs >= 998 && planner.jobs >= 98, "{import:?}");
    assert!(import.set.tasks().iter().all(|task| !task.name.contains("missed")));
}

#[test]
fn markers_of_other_programs_are_tasks() {
    let mut events =
        vec!["{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"a [{\\\"]\"}}".to_string()];
    for k in 0..50 {
        let ts = 16_666 * k;
        events.push(format!("{{\"ph\":\"B\",\"pid\":1,\"tid\":2,\"name\":\"frame\",\"ts\":{ts}}}"));
        events
            .push(format!("{{\"ph\":\"X\",\"pid\":1,\"tid\":9,\"name\":\"load\",\"ts\":{},\"dur\":250.5}}", ts + 1000));
        events.push(format!("{{\"ph\":\"B\",\"pid\":1,\"tid\":2,\"name\":\"draw\",\"ts\":{}}}", ts + 500));
        events.push(format!("{{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":{}}}", ts + 3000));
        events.push(format!("{{\"ph\":\"C\",\"pid\":1,\"name\":\"queue\",\"ts\":{ts},\"args\":{{\"v\":1}}}}"));
        events.push(format!("{{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":{}}}", ts + 5000));
    }
    let folder = Folder::new("chrome-markers");
    let text = format!("{{ \"meta\": [1, \"traceEvents\"], \"traceEvents\":[{}],\"x\":1}}", events.join(","));
    let import = found(&folder.write("trace.json", &text));
    let frame = task(&import, "frame");
    assert_eq!((frame.period, frame.most, frame.jobs), (Time(16_666_000), Time::from_ms(5), 50));
    assert_eq!(task(&import, "load").most, Time(250_500));
    assert_eq!(import.tasks.len(), 2, "{:?}", import.tasks);
    let says = |text: &str| import.notes.iter().any(|note| note.contains(text));
    assert!(
        says("50 markers within others") && says("50 markers of other kinds") && says("WALL TIME"),
        "{:?}",
        import.notes
    );
    // Such a file may lack its end, as Chrome allows for lists.
    let open = folder.write("open.json", format!("[{},", events.join(",\n")));
    assert_eq!(found(&open).tasks.len(), 2);
}

/// Programs write a slice when it begins or when it ends. Either way the outer one is the job, and what another thread
/// writes has no part in the order.
#[test]
fn slices_within_others_are_part_of_them_in_either_order() {
    let folder = Folder::new("chrome-nested");
    let slice = |name: &str, tid: u32, ts: u64, dur: u64| {
        format!("{{\"ph\":\"X\",\"pid\":1,\"tid\":{tid},\"name\":\"{name}\",\"ts\":{ts},\"dur\":{dur}}}")
    };
    for at_end in [false, true] {
        let mut events = Vec::new();
        for k in 0..2_000 {
            let ts = 10_000 * k;
            let mut three =
                [slice("outer", 2, ts, 5000), slice("inner", 2, ts, 1000), slice("inner", 2, ts + 2000, 500)];
            if at_end {
                three.rotate_left(1);
            }
            events.extend(three);
            for (sign, at) in [("B", 100), ("E", 400)] {
                events.push(format!("{{\"ph\":\"{sign}\",\"pid\":1,\"tid\":3,\"name\":\"tick\",\"ts\":{}}}", ts + at));
            }
            if k == 700 {
                events.push(slice("late", 4, ts + 120_000, 10));
            }
        }
        let import = found(&folder.write("trace.json", format!("[{}]", events.join(","))));
        let names: Vec<&str> = import.tasks.iter().map(|task| task.name.as_str()).collect();
        let outer = task(&import, "outer");
        assert_eq!(names.len(), 2, "{names:?}");
        assert_eq!((outer.period, outer.most, outer.jobs), (Time::from_ms(10), Time::from_ms(5), 2_000));
        assert_eq!((import.length, task(&import, "tick").period), (19_995_000_000, Time::from_ms(10)));
        let says = |text: &str| import.notes.iter().any(|note| note.contains(text));
        assert!(says("4 000 markers within others are part of these") && !says("came after"), "{:?}", import.notes);
    }
}
