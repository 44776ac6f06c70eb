//! Schedulers that wake up when a budget is used up: a cost of decisions delays them, and does not keep them deciding
//! for ever.

use temponet_sched::build;
use temponet_sim::{Metrics, Unobserved, simulate};
use temponet_task::{Attribute, Costs, Server, Task, TaskSet, Time};

/// Load 0.5 with a critical task, which may overrun, first on one core and then on two, and a served task.
fn set(cores: usize) -> TaskSet {
    let ms = Time::from_ms;
    let mut high = Task::periodic("high", ms(20), ms(4));
    (high.criticality, high.wcet_high) = (1, Some(ms(8)));
    let mut served = Task::periodic("served", ms(40), ms(4));
    served.extra.set(Attribute::Server, Some(0));
    let mut set = TaskSet::new("costs", vec![high, Task::periodic("low", ms(10), ms(2)), served], cores);
    set.system.set_servers(vec![Server { name: "server".into(), budget: ms(1), period: ms(10) }]);
    set
}

fn run(scheduler: &str, set: &TaskSet) -> Metrics {
    let mut scheduler = build(scheduler).unwrap();
    simulate(set, 1, Time::from_ms(400), &mut *scheduler, &mut Unobserved).unwrap()
}

#[test]
fn the_cost_of_a_decision_does_not_ask_for_another_one() {
    for scheduler in ["amc", "edf-vd", "cbs", "llref", "lre-tl", "cd-split", "edzl", "mllf"] {
        for cores in [1, 2] {
            let free = run(scheduler, &set(cores));
            for decision in [Time(1), Time::from_us(1)] {
                let mut set = set(cores);
                set.system.set_costs(Costs { decision, ..*set.costs() });
                let dear = run(scheduler, &set);
                assert_eq!(dear.jobs.released, dear.jobs.met, "{scheduler} on {cores} cores at {decision}");
                assert!(dear.decisions <= 2 * free.decisions, "{scheduler}: {} > {}", dear.decisions, free.decisions);
            }
        }
    }
}
