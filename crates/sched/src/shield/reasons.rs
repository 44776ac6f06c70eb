//! Reasons why tasks are left out, each the one that keeps the task out.
//!
//! Of a task with parts, the part at fault has the reason, and the others refer to it; a reason that concerns the whole
//! is that of every part.

use temponet_task::{System, TaskId};

use super::choice::{Choice, Wanted};
use super::no_guarantee::WhyNot;
use super::provable::ProvableTasks;

/// Largest number of tasks of which a test says whether they fit beside the guaranteed ones.
const MOST_TESTED: usize = 64;

/// Completes the reasons, where they are not known yet.
pub(super) fn complete(system: &System, wanted: &Wanted, guaranteed: &[TaskId], why_not: &mut [Option<WhyNot>]) {
    let mut is_guaranteed = vec![false; system.tasks().len()];
    guaranteed.iter().for_each(|task| is_guaranteed[*task] = true);
    let left_out = |task: &TaskId| !system.tasks()[*task].is_part && !is_guaranteed[*task];
    let mut first_out: Option<(TaskId, u8)> = None;
    for (task, level) in wanted.with_levels().filter(|(task, _)| left_out(task)) {
        let (out, highest) = *first_out.get_or_insert((task, level));
        if blame_a_part(system, task, why_not, |_| true) {
            continue;
        }
        let first = system.first_part(task);
        let follows = || system.tasks()[first].after.iter().any(|before| !is_guaranteed[*before]);
        let why = match () {
            _ if highest > level => WhyNot::HigherLeftOut(name_of_whole(system, out)),
            _ if follows() => WhyNot::Follows,
            _ => unfit(system, guaranteed),
        };
        give(system, task, &why, why_not);
    }
    let mut is_wanted = vec![false; system.tasks().len()];
    wanted.tasks.iter().for_each(|task| is_wanted[*task] = true);
    let unwanted = if wanted.by_name { WhyNot::NotAsked } else { WhyNot::NotCritical };
    for task in system.task_ids().filter(left_out).filter(|task| !is_wanted[*task]) {
        // Nobody has divided its deadline.
        if !blame_a_part(system, task, why_not, |why| *why != WhyNot::Follows || system.first_part(task) == task) {
            give(system, task, &unwanted, why_not);
        }
    }
    for task in system.task_ids().filter(|task| is_wanted[*task]) {
        let mut before = system.tasks()[task].after.iter().filter(|before| !is_wanted[**before]);
        if let (Some(WhyNot::Follows), Some(before)) = (&why_not[task], before.next()) {
            let name = name_of_whole(system, *before);
            let named = if wanted.by_name { WhyNot::FollowsUnasked } else { WhyNot::FollowsUncritical };
            why_not[task] = Some(named(name));
        }
    }
}

/// The reason of a task for which no place is left beside the guaranteed ones.
fn unfit(system: &System, guaranteed: &[TaskId]) -> WhyNot {
    match (guaranteed.is_empty(), system.cores()) {
        (true, _) => WhyNot::DoesNotFitAlone,
        (false, 1) => WhyNot::DoesNotFit,
        (false, _) => WhyNot::NotPlaced,
    }
}

/// Finds the first part of a task with a reason that counts, and lets the others refer to it. Returns whether there is
/// one.
fn blame_a_part(
    system: &System,
    whole: TaskId,
    why_not: &mut [Option<WhyNot>],
    counts: impl Fn(&WhyNot) -> bool,
) -> bool {
    let has = |part: &TaskId| why_not[*part].as_ref().is_some_and(&counts);
    // Where the parts together take too long, all shares are too short.
    let is_root = |part: &TaskId| why_not[*part] == Some(WhyNot::PathTooLong);
    let fault = system.parts(whole).find(is_root).or_else(|| system.parts(whole).find(has));
    let others = system.parts(whole).filter(|part| Some(*part) != fault);
    others.filter(|_| fault.is_some()).for_each(|part| why_not[part] = Some(WhyNot::OtherPart));
    fault.is_some()
}

/// Gives all parts of a task the same reason.
fn give(system: &System, task: TaskId, why: &WhyNot, why_not: &mut [Option<WhyNot>]) {
    system.parts(system.whole(task)).for_each(|part| why_not[part] = Some(why.clone()));
}

/// Says of the followers that are left out beside their guaranteed predecessors why their deadlines are not divided, as
/// in the choice `divided`.
pub(super) fn of_followers(system: &System, undivided: &mut Choice, divided: &Choice) {
    let why_not = &mut undivided.why_not;
    for whole in system.whole_tasks() {
        let parts = || system.parts(whole);
        // Without a division every follower seems to come after a task that is not guaranteed.
        let Some(fault) = parts().find(|part| why_not[*part] == Some(WhyNot::Follows)) else { continue };
        let is_kept = |before: &TaskId| matches!(why_not[*before], None | Some(WhyNot::OtherPart));
        if !system.tasks()[fault].after.iter().all(is_kept) {
            continue;
        }
        let in_itself = parts().any(|part| match &divided.why_not[part] {
            Some(
                WhyNot::DoesNotFit | WhyNot::NotPlaced | WhyNot::OtherPart | WhyNot::HigherLeftOut(_) | WhyNot::Follows,
            )
            | None => false,
            Some(_) => true,
        });
        match in_itself {
            true => parts().for_each(|part| why_not[part] = divided.why_not[part].clone()),
            false => give(system, whole, &WhyNot::FollowsAtACost, why_not),
        }
    }
}

/// Tells the tasks that do not fit beside the guaranteed ones from those that only come behind one of them in the order,
/// and finds the part at fault.
pub(super) fn refine(
    provable: &ProvableTasks<'_>,
    wanted: &Wanted,
    guaranteed: &[TaskId],
    why_not: &mut [Option<WhyNot>],
) {
    let system = provable.system;
    let (mut tests, mut stop) = (0, None);
    for whole in wanted.tasks.iter().copied().filter(|task| !system.tasks()[*task].is_part) {
        let parts = || system.parts(whole);
        let unfit = unfit(system, guaranteed);
        if !parts().all(|part| why_not[part].as_ref() == Some(&unfit)) {
            continue;
        }
        let mut tried = guaranteed.to_vec();
        let mut is_fault = |part: &TaskId| {
            tests += 1;
            tried.push(*part);
            tests <= MOST_TESTED && provable.fit(&tried).is_none()
        };
        match (parts().find(&mut is_fault), &stop) {
            (Some(fault), _) => {
                parts().filter(|part| *part != fault).for_each(|part| why_not[part] = Some(WhyNot::OtherPart));
                stop.get_or_insert(name_of_whole(system, whole));
            }
            (None, Some(stop)) => give(system, whole, &WhyNot::BehindOne(stop.clone()), why_not),
            (None, None) => {}
        }
    }
}

/// Returns the name of the task that a part belongs to.
pub(super) fn name_of_whole(system: &System, task: TaskId) -> String {
    system.tasks()[system.whole(task)].name.clone()
}
