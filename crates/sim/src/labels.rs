//! Words for parts of a system, as tables, pictures and traces show them.

use temponet_task::{Core, CoreId, CoreSet, Goal, Measure, Preemption, Speed, System, Task, TaskId};

/// Returns the heading of a measure's column in a table.
pub fn measure(goal: &Goal, measure: Measure) -> String {
    match measure {
        Measure::Critical(level) if goal.has_levels() => format!("critical {level}"),
        Measure::Critical(_) => "critical met".into(),
        Measure::Chains => "chains met".into(),
        Measure::Mk => "(m,k) kept".into(),
        Measure::Value => "value".into(),
        Measure::Met => "met".into(),
        Measure::WorstTask => "worst task".into(),
    }
}

/// Returns the noun for the whole that a measure is a share of, as in "98% of **the critical jobs** in time".
pub fn whole(goal: &Goal, measure: Measure) -> String {
    match measure {
        Measure::Critical(level) if goal.has_levels() => format!("criticality {level}"),
        Measure::Critical(_) => "the critical jobs".into(),
        Measure::Chains => "the chains' instances".into(),
        Measure::Mk => "the (m,k) windows".into(),
        Measure::Value => "the value".into(),
        Measure::Met => "the jobs".into(),
        Measure::WorstTask => "the worst task's jobs".into(),
    }
}

/// Returns the limit on preemption, such as "not preempted" or "preempted every 2ms"; none without a limit.
pub fn preemption(preemption: Preemption) -> Option<String> {
    match preemption {
        Preemption::Free => None,
        Preemption::None => Some("not preempted".into()),
        Preemption::Cancel => Some("not preempted, cancelled when late".into()),
        Preemption::Every(every) => Some(format!("preempted every {every}")),
    }
}

/// Returns what the jobs of a task say beforehand, "estimated exactly" or "estimated, error 0.3"; none without
/// estimates.
pub fn estimate(task: &Task) -> Option<String> {
    task.estimate_error.map(|error| match error {
        0.0 => "estimated exactly".into(),
        error => format!("estimated, error {error}"),
    })
}

/// Returns the label of a core in pictures: its name and its speed where cores have different ones.
pub fn core(system: &System, core: CoreId) -> String {
    let name = system.core_name(core);
    match system.machine().cores().get(core.index()) {
        Some(this) if system.machine().is_unequal() || this.speed != Speed::FULL => {
            format!("{name} ×{}", this.speed.as_f64())
        }
        _ => name,
    }
}

/// Returns the machine: "1 core", "4 cores", or "8 cores (4 big ×1, 4 little ×0.4)".
pub fn machine(system: &System) -> String {
    let cores = match system.cores() {
        1 => "1 core".into(),
        count @ ..1000 => format!("{count} cores"),
        count => format!("{} {:03} cores", count / 1000, count % 1000),
    };
    let group = |group: &[Core]| {
        let only = if group[0].only { " only for its own tasks" } else { "" };
        format!("{} {} ×{}{only}", group.len(), group[0].name, group[0].speed.as_f64())
    };
    let groups: Vec<String> = system.machine().cores().chunk_by(|a, b| a == b).map(group).collect();
    if groups.is_empty() { cores } else { format!("{cores} ({})", groups.join(", ")) }
}

/// Returns the cores that a task may use, "big" or "cores 0, 2"; none if it may use all that are not only for others.
pub fn cores_of(system: &System, task: TaskId) -> Option<String> {
    let own = &system.tasks()[task].cores;
    if own.is_all() || system.machine().shared().is_some_and(|shared| shared == *own) {
        return None;
    }
    Some(cores_in(system, own))
}

/// Returns the cores of a set, by the names of whole groups, else by their numbers.
fn cores_in(system: &System, own: &CoreSet) -> String {
    let numbers: Vec<String> = own.iter(system.cores()).map(|core| core.to_string()).collect();
    let groups: Vec<&[Core]> = system.machine().cores().chunk_by(|a, b| a.name == b.name).collect();
    let (mut names, mut start, mut is_whole) = (Vec::new(), 0, !groups.is_empty());
    for group in groups {
        let inside = (start..start + group.len()).filter(|core| own.contains(CoreId::new(*core))).count();
        is_whole &= inside == 0 || inside == group.len();
        names.extend((inside > 0).then(|| group[0].name.clone()));
        start += group.len();
    }
    let numbered = if numbers.len() == 1 { "core" } else { "cores" };
    if is_whole { names.join(", ") } else { format!("{numbered} {}", numbers.join(", ")) }
}

/// Returns where the parts of a task run in turn, with their limits on preemption: "any core → big (not preempted) →
/// any core". Where some cores are only for tasks that name them, the others are named: "cpu → gpu → cpu".
pub fn parts(system: &System, whole: TaskId) -> String {
    let part = |part: TaskId| {
        let shared = || system.machine().shared().map(|shared| cores_in(system, &shared));
        let cores = cores_of(system, part).or_else(shared).unwrap_or_else(|| "any core".into());
        match preemption(system.tasks()[part].preemption) {
            Some(limit) => format!("{cores} ({limit})"),
            None => cores,
        }
    };
    system.parts(whole).map(part).collect::<Vec<_>>().join(" → ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::{TaskSet, Time};

    #[test]
    fn cores_are_named_with_their_speeds() {
        let bound = Task::periodic("t", Time(10), Time(1)).with_cores(CoreSet::of([CoreId(1)]));
        let named = |name: &str, speed: u32| Core::new(name, Speed(speed));
        let machine_of = vec![named("big", 1000), named("little", 500)];
        let set = TaskSet::new("s", vec![bound], 2);
        assert_eq!((machine(&set), cores_of(&set, TaskId(0))), ("2 cores".into(), Some("core 1".into())));
        let set = set.with_machine(machine_of);
        assert_eq!(machine(&set), "2 cores (1 big ×1, 1 little ×0.5)");
        let free = Task::periodic("free", Time(10), Time(1));
        let gpu = vec![named("cpu", 1000), named("gpu", 1000).with_only(true)];
        let only = TaskSet::new("s", vec![free, set.tasks()[0].clone()], 2).with_machine(gpu);
        assert_eq!(machine(&only), "2 cores (1 cpu ×1, 1 gpu ×1 only for its own tasks)");
        assert_eq!([0, 1].map(|task| parts(&only, TaskId(task))), ["cpu", "gpu"]);
        assert_eq!([0, 1].map(|task| cores_of(&only, TaskId(task))), [None, Some("gpu".into())]);
        assert_eq!(
            (core(&set, CoreId(1)), cores_of(&set, TaskId(0))),
            ("core 1 (little) ×0.5".into(), Some("little".into()))
        );
    }
}
