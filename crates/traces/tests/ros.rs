//! Contract: callbacks, their names and every edge between them are found, with and without the events at the start, and
//! their processor time is that of the kernel's switches.

use temponet_task::{ExecutionModel, TaskId, Time};
use temponet_traces::{Kind, Options, TaskBy};

use crate::{Folder, found, read, task};

const INIT: &str = "\
    [1.000000001] (+0.1) vm ros2:rcl_node_init: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { node_handle = 0x11, rmw_handle = 0x0, node_name = \"camera\", namespace = \"/\" }\n\
    [1.000000002] (+0.1) vm ros2:rcl_node_init: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { node_handle = 0x12, node_name = \"detector\", namespace = \"/perception\" }\n\
    [1.000000003] (+0.1) vm ros2:rcl_publisher_init: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { publisher_handle = 0x51, node_handle = 0x11, topic_name = \"/image\", queue_depth = 10 }\n\
    [1.000000004] (+0.1) vm ros2:rcl_timer_init: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { timer_handle = 0x31, period = 20000000 }\n\
    [1.000000005] (+0.1) vm ros2:rclcpp_timer_callback_added: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { timer_handle = 0x31, callback = 0x100 }\n\
    [1.000000006] (+0.1) vm ros2:rclcpp_timer_link_node: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { timer_handle = 0x31, node_handle = 0x11 }\n\
    [1.000000007] (+0.1) vm ros2:rcl_subscription_init: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { subscription_handle = 0x61, node_handle = 0x12, topic_name = \"/image\", queue_depth = 10 }\n\
    [1.000000008] (+0.1) vm ros2:rclcpp_subscription_init: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { subscription_handle = 0x61, subscription = 0x62 }\n\
    [1.000000009] (+0.1) vm ros2:rclcpp_subscription_callback_added: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { subscription = 0x62, callback = 0x200 }\n\
    [1.000000010] (+0.1) vm ros2:rcl_subscription_init: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { subscription_handle = 0x71, node_handle = 0x11, topic_name = \"/objects\", queue_depth = 10 }\n\
    [1.000000011] (+0.1) vm ros2:rclcpp_subscription_callback_added: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { subscription = 0x71, callback = 0x300 }\n\
    [1.000000012] (+0.1) vm ros2:rcl_publisher_init: { cpu_id = 1 }, { vpid = 5, vtid = 5 }, { publisher_handle = 0x52, node_handle = 0x12, topic_name = \"/objects\", queue_depth = 10 }\n";

/// A timer of 20 ms publishes an image each time; the detector works on each, and publishes every fourth time.
fn run(switches: bool) -> String {
    let mut out = String::new();
    let date = |ns: u64| format!("[{}.{:09}]", ns / 1_000_000_000, ns % 1_000_000_000);
    let mut say = |time: u64, tid: u32, name: &str, fields: String| {
        out += &format!(
            "{} (+0.0) vm {name}: {{ cpu_id = 1 }}, {{ vpid = 5, vtid = {tid} }}, {{ {fields} }}\n",
            date(time)
        );
    };
    let switch = |from: u32, state: u32, to: u32| {
        format!(
            "prev_comm = \"t{from}\", prev_tid = {from}, prev_prio = 20, prev_state = {state}, next_comm = \"t{to}\", next_tid = {to}, next_prio = 20"
        )
    };
    for k in 0..100u64 {
        let start = 2_000_000_000 + 20_000_000 * k;
        if switches {
            say(start, 0, "sched_switch", switch(0, 0, 40));
        }
        say(start + 1_000, 40, "ros2:callback_start", "callback = 0x100, is_intra_process = 0".into());
        if switches {
            // Someone else runs for a millisecond meanwhile.
            say(start + 500_000, 40, "sched_switch", switch(40, 0, 99));
            say(start + 1_500_000, 99, "sched_switch", switch(99, 1, 40));
        }
        say(start + 1_600_000, 40, "ros2:rclcpp_publish", format!("publisher_handle = 0x51, message = {k}"));
        say(start + 1_600_001, 40, "ros2:rcl_publish", format!("publisher_handle = 0x51, message = {k}"));
        say(start + 2_001_000, 40, "ros2:callback_end", "callback = 0x100".into());
        if switches {
            say(start + 2_010_000, 40, "sched_switch", switch(40, 1, 41));
        }
        say(start + 2_020_000, 41, "ros2:callback_start", "callback = 0x200, is_intra_process = 0".into());
        if k % 4 == 0 {
            say(start + 5_000_000, 41, "ros2:rcl_publish", format!("publisher_handle = 0x52, message = {k}"));
        }
        say(start + 7_020_000, 41, "ros2:callback_end", "callback = 0x200".into());
        if k % 4 == 0 {
            say(start + 7_050_000, 41, "ros2:callback_start", "callback = 0x300, is_intra_process = 0".into());
            say(start + 7_250_000 + 10 * k, 41, "ros2:callback_end", "callback = 0x300".into());
        }
        if switches {
            say(start + 8_000_000, 41, "sched_switch", switch(41, 1, 0));
        }
    }
    out
}

#[test]
fn callbacks_and_all_their_edges_are_found() {
    let folder = Folder::new("ros");
    let import = found(&folder.write("trace.txt", INIT.to_string() + &run(true)));
    assert_eq!(import.task_by, TaskBy::Callback);
    let names: Vec<&str> = import.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["/camera: timer 20ms", "/perception/detector: /image", "/camera: /objects"]);
    let timer = &import.tasks[0];
    assert_eq!((timer.period, timer.jobs, timer.most), (Time::from_ms(20), 100, Time::from_ms(1)));
    assert_eq!(import.tasks[1].kind, Kind::Follows { after: 0 });
    assert_eq!(import.tasks[2].reads, [1]);
    let tasks = import.set.tasks();
    assert_eq!(tasks[TaskId::new(1)].after, [TaskId::new(0)]);
    assert_eq!((tasks[TaskId::new(1)].wcet, tasks[TaskId::new(2)].wcet), (Time::from_ms(5), Time(200_960)));
    assert!(matches!(tasks[TaskId::new(2)].execution, ExecutionModel::Empirical { .. }));
    assert!(
        import.toml.contains("reads instead of coming after: 100 jobs before it publish 25 times"),
        "{}",
        import.toml
    );
    let path = std::path::Path::new("set.toml");
    let again = temponet_formats::parse(&import.toml, temponet_formats::Format::Toml, path).unwrap();
    assert_eq!(again.set.tasks(), tasks);
}

#[test]
fn without_the_events_at_the_start_names_are_unknown_and_nothing_panics() {
    let folder = Folder::new("ros-unknown");
    let import = found(&folder.write("trace.txt", run(true)));
    let names: Vec<&str> = import.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["<unknown callback 0x100>", "<unknown callback 0x200>", "<unknown callback 0x300>"]);
    assert!(import.tasks.iter().all(|task| task.reads.is_empty()));
}

#[test]
fn without_switches_times_are_wall_time_and_it_is_said() {
    let folder = Folder::new("ros-wall");
    let import = found(&folder.write("trace.txt", INIT.to_string() + &run(false)));
    assert_eq!(import.tasks[0].most, Time::from_ms(2));
    assert!(import.notes.iter().any(|note| note.contains("WALL TIME")), "{:?}", import.notes);
    let with = found(&folder.write("with.txt", INIT.to_string() + &run(true)));
    assert!(!with.notes.iter().any(|note| note.contains("WALL TIME")), "{:?}", with.notes);
}

#[test]
fn threads_of_the_same_trace_can_be_the_tasks() {
    let folder = Folder::new("ros-threads");
    let path = folder.write("trace.txt", INIT.to_string() + &run(true));
    let import = read(&[path], &Options { task_by: Some(TaskBy::Thread), ..Options::default() }).unwrap();
    assert_eq!(task(&import, "t40").most, Time(1_010_000));
    assert_eq!(task(&import, "t41").period, Time::from_ms(20));
}
