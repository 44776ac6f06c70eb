//! What the shield guarantees on a task set, as text.

use temponet_lab::guarantee::{Guaranteed, KeptCore};
use temponet_sched::LARGEST_SCALING;
use temponet_sched::shield::Role;
use temponet_task::CoreId;
use temponet_wording::{counted, listed};

use crate::table;

/// Renders the section of `temponet analyze`.
pub fn text(guaranteed: &Guaranteed<'_>) -> String {
    let mut out = format!("\nThe shield {}.\n", guaranteed.sentence());
    out += &guaranteed.exceptions().iter().map(|sentence| format!("{sentence}\n")).collect::<String>();
    let Some(guarantee) = guaranteed.role().guarantee() else { return out + &not_guaranteed(guaranteed) };
    let cores = guaranteed.cores();
    let row = |kept: &KeptCore| {
        let own = guarantee.tasks().filter(|(_, core)| *core == Ok(CoreId::new(kept.core))).map(|(name, _)| name);
        let growth = kept.growth.map_or("–".into(), |factor| {
            let more = if factor < MOST_SHOWN { "" } else { " or more" };
            format!("{factor:.3}{more}")
        });
        vec![listed(own, MOST_NAMES_OF_CORE), kept.core.to_string(), format!("{:.4}", kept.utilization), growth]
    };
    let header = ["guaranteed by the shield", "core", "utilization", "times the wcets"];
    let rows: Vec<Vec<String>> = cores.iter().take(MOST_ROWS).map(row).collect();
    out += &format!("\n{}", table::render(&header, &rows));
    if cores.len() > MOST_ROWS {
        out += &format!("… and {}; --json has them all\n", counted(cores.len() - MOST_ROWS, "more core"));
    }
    if guarantee.covers_overruns() && guaranteed.has_overruns() {
        out += "The utilization is at the wcet. The factor scales wcet_high, too, and both must fit.\n";
    }
    out + &not_guaranteed(guaranteed)
}

/// Greatest number of cores in the table.
const MOST_ROWS: usize = 40;
/// Greatest number of tasks that a row of the table names.
const MOST_NAMES_OF_CORE: usize = 4;
/// Greatest number of tasks that a line below the table names.
const MOST_NAMES: usize = 8;
/// Factor from which on the true one may be larger. Factors are multiples of a thousandth.
const MOST_SHOWN: f64 = LARGEST_SCALING - 0.001;

/// Returns one line for each reason why tasks are not guaranteed, in the order of the set; none for the reason that the
/// sentence about the whole set has already.
fn not_guaranteed(guaranteed: &Guaranteed<'_>) -> String {
    let said = match guaranteed.role() {
        Role::Disarmed(why) => Some(why.to_string()),
        _ => None,
    };
    let others = guaranteed.not_guaranteed();
    let mut reasons: Vec<&str> = Vec::new();
    for (_, why) in &others {
        if !reasons.contains(&why.as_str()) && said.as_ref() != Some(why) {
            reasons.push(why);
        }
    }
    let line = |why: &str| {
        let concerned = others.iter().filter(|(_, other)| other == why).map(|(name, _)| *name);
        format!("not guaranteed: {} ({why})\n", listed(concerned, MOST_NAMES))
    };
    reasons.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet_task::{Arrival, ListedJob, Task, TaskSet, Time};

    fn periodic(name: &str, wcet: u64, criticality: u8) -> Task {
        Task::periodic(name, Time::from_ms(10), Time::from_ms(wcet)).with_criticality(criticality)
    }

    /// No file format of ours holds lists of jobs beside tasks with a criticality, but the simulator runs such sets.
    #[test]
    fn a_list_of_jobs_beside_periodic_tasks_has_its_own_reason() {
        let ms = Time::from_ms;
        let (wcet, bcet) = (ms(2), ms(2));
        let job = ListedJob::new(ms(5), ms(15), wcet).with_bcet(bcet).with_criticality(1);
        let listed = periodic("shots", 2, 1).with_arrival(Arrival::Listed([job].into()));
        let set = TaskSet::new("s", vec![periodic("brake", 4, 1), listed, periodic("log", 5, 0)], 1);
        let text = text(&Guaranteed::on(&set));
        assert!(text.contains("of 1 of 3 tasks by slack stealing: brake; not shots.\n"), "{text}");
        assert!(
            text.contains("not guaranteed: shots (its jobs do not recur)\nnot guaranteed: log (it is not"),
            "{text}"
        );
    }

    #[test]
    fn long_lists_are_cut_and_great_factors_are_bounds() {
        let tasks = (0..20).map(|at| Task::periodic(format!("t{at}"), Time::from_secs(1), Time(10))).collect();
        let text = text(&Guaranteed::on(&TaskSet::new("s", tasks, 1)));
        assert!(text.contains("\nt0, t1, t2, t3 and 16 more "), "{text}");
        assert!(text.ends_with("999.999 or more\n"), "{text}");
    }
}
