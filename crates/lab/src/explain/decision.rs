//! The explanation of one decision of the learned scheduler, found in a run, and its page.

use serde::Serialize;

use super::ModelRun;
use super::diagnostics::{AttentionMap, Explanation, KeptLine, explain};
use crate::advice::Decider;
use crate::comparison::listed;
use crate::guarantee::Guaranteed;
use crate::roster::SHIELDED;
use temponet::stages::Observation;
use temponet_sched::global_edf;
use temponet_sched::shield::{Guarantee, Role};
use temponet_sim::{Engine, SimError, Unobserved};
use temponet_task::{Assignment, CoreId, JobId, Scheduler, SystemView, TaskSet, Time};

use temponet_page::charts::Grid;
use temponet_page::fragment::{figure, figures, folded};
use temponet_page::{HtmlCell, HtmlTable, Page};

/// A decision, and what others would have decided.
#[derive(Clone, Debug)]
pub struct ExplainedDecision {
    /// Input and output of the network.
    pub network: Explanation,
    /// Job on each core after the decision, as `task#number`.
    pub done: Vec<Option<String>>,
    /// Job on each core by the network alone.
    pub wanted: Vec<Option<String>>,
    /// Job on each core under EDF.
    pub edf: Vec<Option<String>>,
    /// Guaranteed job that each core keeps time for first: the ready one with the earliest deadline. All are `None`
    /// where the shield guarantees nothing or a stand-in decides.
    pub kept: Vec<Option<String>>,
    /// Job that holds each core until its next preemption point. It stays there, whatever a scheduler wants.
    pub held: Vec<Option<String>>,
    /// Jobs that cannot run because another job holds a resource.
    pub waiting: Vec<WaitingJob>,
}

/// A job that cannot run because another job holds a resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitingJob {
    /// The job, as `task#number`.
    pub job: String,
    /// Name of the resource that keeps it from running.
    pub resource: String,
    /// Job that holds the resource.
    pub holder: String,
    /// Job that runs in its place if it is chosen; `None` if the protocol lets none.
    pub runs_instead: Option<String>,
}

/// Runs up to the first decision at or after `at` with a job ready, and explains it; `None` if there is none before the
/// horizon.
pub fn explain_at(run: ModelRun<'_>, at: Time) -> Result<Option<ExplainedDecision>, SimError> {
    let ModelRun { set, seed, horizon, model, scheduler, plain } = run;
    let system = set.system.clone();
    let (mut edf, role) = (global_edf(), Role::on(&system));
    scheduler.start(&system).map_err(SimError::NotApplicable)?;
    plain.start(&system).map_err(SimError::NotApplicable)?;
    edf.start(&system).map_err(SimError::NotApplicable)?;
    let mut observation = Observation::default();
    observation.start(&system);
    let mut engine = Engine::new(set, seed, horizon);
    let [mut done, mut wanted, mut earliest] = [(); 3].map(|()| Assignment::default());
    while engine.advance(&mut Unobserved) {
        let view = engine.view();
        observation.note(&view);
        for assignment in [&mut done, &mut wanted, &mut earliest] {
            assignment.reset(set.cores());
        }
        scheduler.decide(&view, &mut done);
        plain.decide(&view, &mut wanted);
        edf.decide(&view, &mut earliest);
        if view.now >= at && !view.active.is_empty() {
            let names = |assignment: &Assignment| assignment.cores().iter().map(|job| name(&view, *job)).collect();
            let network = explain(model, &mut observation, &view, &wanted);
            return Ok(Some(ExplainedDecision {
                network,
                done: names(&done),
                wanted: names(&wanted),
                edf: names(&earliest),
                kept: set.core_ids().map(|core| name(&view, first_kept(&view, role.guarantee()?, core))).collect(),
                held: set.core_ids().map(|core| name(&view, view.held_on(core))).collect(),
                waiting: view.active.iter().filter_map(|id| waiting(set, &view, *id)).collect(),
            }));
        }
        engine.apply(&done, &mut Unobserved)?;
    }
    Ok(None)
}

/// Returns the ready guaranteed job with the earliest deadline among those that a core keeps time for. A job that has
/// used up its wcet is not guaranteed any more, unless the guarantee covers overruns.
fn first_kept(view: &SystemView<'_>, guarantee: &Guarantee, core: CoreId) -> Option<JobId> {
    let kept = view.ready().filter(|(_, job)| {
        let is_covered = guarantee.covers_overruns() || job.executed < job.wcet;
        is_covered && guarantee.core_of(job.task) == Some(core)
    });
    kept.min_by_key(|(_, job)| (job.deadline, job.tie())).map(|(id, _)| id)
}

fn name(view: &SystemView<'_>, id: Option<JobId>) -> Option<String> {
    let job = view.job(id?);
    Some(format!("{}#{}", view.task_of(job).name, job.number))
}

/// Describes a job that cannot run because another job holds a resource.
fn waiting(set: &TaskSet, view: &SystemView<'_>, id: JobId) -> Option<WaitingJob> {
    let locks = view.locks?;
    let (resource, holder) = locks.blocker(id)?;
    Some(WaitingJob {
        job: name(view, Some(id))?,
        resource: set.resources().get(resource.index())?.clone(),
        holder: name(view, Some(holder))?,
        runs_instead: name(view, locks.runs_as(id)),
    })
}

fn cores(jobs: &[Option<String>]) -> String {
    jobs.iter().map(|job| job.as_deref().unwrap_or("idle")).collect::<Vec<_>>().join(", ")
}

/// States what the shield guarantees, and the guaranteed jobs that cores keep time for.
fn guarantee(decision: &ExplainedDecision, guaranteed: &Guaranteed<'_>) -> String {
    let kept =
        decision.kept.iter().enumerate().filter_map(|(core, job)| Some(format!("core {core} for {}", job.as_ref()?)));
    let kept = kept.collect::<Vec<_>>().join(", ");
    let kept = if kept.is_empty() { kept } else { format!(" Time is kept on {kept}.") };
    format!(" The shield {}.{kept}", guaranteed.sentence())
}

/// States which jobs hold their cores, so that no scheduler has a choice there; `None` if none does.
fn holding(decision: &ExplainedDecision) -> Option<String> {
    let held: Vec<&str> = decision.held.iter().flatten().map(String::as_str).collect();
    let (verb, cores, points) = match held.len() {
        0 => return None,
        1 => ("holds", "its core", "its next preemption point"),
        _ => ("hold", "their cores", "their next preemption points"),
    };
    Some(format!("{} {verb} {cores} until {points}", listed(&held)))
}

/// States which jobs wait for resources, and what runs if they are chosen.
fn waits(decision: &ExplainedDecision) -> String {
    let wait = |waiting: &WaitingJob| {
        let WaitingJob { job, resource, holder, runs_instead } = waiting;
        let instead = match runs_instead {
            Some(runner) => format!("if it is chosen, {runner} runs in its place"),
            None => "nothing runs in its place".to_string(),
        };
        format!(" {job} waits for {resource}, held by {holder}; {instead}.")
    };
    decision.waiting.iter().map(wait).collect()
}

/// Describes the decision in a few sentences. `guaranteed` is `None` without a shield. `decider` is who decides on the
/// set; `None` if it is the network, because there is no shield.
pub fn facts(decision: &ExplainedDecision, guaranteed: Option<&Guaranteed<'_>>, decider: Option<&Decider>) -> String {
    let ExplainedDecision { network, done, wanted, edf, held, .. } = decision;
    let is_followed = decider.is_none_or(Decider::is_network);
    let shield = match done == wanted {
        _ if guaranteed.is_none() => "and no shield was asked".to_string(),
        true => "which the shield let pass".to_string(),
        false => format!("but the shield ran {}", cores(done)),
    };
    let would_have = |name: &str, jobs: &[Option<String>], done: &[Option<String>]| match jobs == done {
        true => format!("{name} would have done the same"),
        false => format!("{name} would have run {}", cores(jobs)),
    };
    let idling = match network.idle_q {
        None => "It never chooses to idle".into(),
        Some(idle_q) => format!("Idling was worth {idle_q:.4}"),
    };
    let now = Time(network.now_ns);
    let choice = match holding(decision) {
        Some(holding) if held.iter().all(Option::is_some) => {
            format!("At {now} {holding}, so there was nothing to decide.")
        }
        holding => {
            let holding = holding.map_or(String::new(), |holding| format!(" {holding}, whatever is wanted."));
            match is_followed {
                true => {
                    let same = would_have("EDF", edf, wanted);
                    format!("At {now} the network wanted {}, {shield}.{holding} {same}. {idling}.", cores(wanted))
                }
                false => {
                    let (edf, network) = (would_have("EDF", edf, done), would_have("The network", wanted, done));
                    format!("At {now} {SHIELDED} ran {}.{holding} {edf}. {network}. {idling}.", cores(done))
                }
            }
        }
    };
    let waits = waits(decision);
    let stayed = |kept: &KeptLine| {
        let name = |(task, job): &(String, u64)| format!("{task}#{job}");
        format!(
            " {} kept its core from {}, whose Q is {:.4} more: moving would have wasted {}, so that staying was worth {:.4}.",
            name(&kept.job),
            name(&kept.instead_of),
            kept.lacked,
            Time(kept.cost_ns),
            kept.worth
        )
    };
    let staying: String = network.kept.iter().filter(|_| is_followed).map(stayed).collect();
    let guarantee = guaranteed.map_or(String::new(), |guaranteed| guarantee(decision, guaranteed));
    format!(
        "{choice}{waits}{staying}{guarantee} Attention entropy by layer: {} bits; alignment {:.0}%.",
        network.entropy_bits.iter().map(|bits| format!("{bits:.2}")).collect::<Vec<_>>().join(", "),
        100.0 * network.alignment
    )
}

/// Returns the decision as a JSON object. `guaranteed` is `None` without a shield.
/// `decider` is who decides on the set; `None` without a shield.
pub fn json(
    set: &TaskSet,
    decision: &ExplainedDecision,
    guaranteed: Option<&Guaranteed<'_>>,
    decider: Option<&Decider>,
) -> serde_json::Value {
    let ExplainedDecision { network, done, wanted, edf, kept, held, waiting } = decision;
    let kept = guaranteed.map(|_| kept);
    // Where another one decides, what the network wanted was not asked for.
    let is_followed = decider.is_none_or(Decider::is_network);
    serde_json::json!({
        "task_set": set.name, "decider": decider, "decision": network, "done": done, "wanted": wanted, "edf": edf,
        "shield": guaranteed.is_some(), "shield_changed_it": is_followed.then_some(done != wanted),
        "guarantee": guaranteed.map(Guaranteed::json), "kept": kept, "held": held, "waiting": waiting,
    })
}

/// Returns the page: the ready jobs, and the attention of every head as a heat map.
pub fn page(set: &TaskSet, decision: &ExplainedDecision, facts: &str) -> String {
    let network = &decision.network;
    let names = row_names(network);
    let maps: String = network.attention.iter().map(|map| heat_map(map, &names)).collect();
    let mut table = HtmlTable::sortable();
    // The last column is there only if a job has something to say in it.
    let is_estimated = network.jobs.iter().any(|job| job.estimate_ns.is_some());
    for (name, meaning) in &COLUMNS[..COLUMNS.len() - usize::from(!is_estimated)] {
        table.column(name, meaning, "");
    }
    for job in &network.jobs {
        let ms = |ns: i64| HtmlCell::figure(format!("{:.3} ms", ns as f64 / 1e6), Some(ns as f64));
        let estimate = |[median, high]: [u64; 2]| {
            HtmlCell::figure(format!("{}, {}", Time(median), Time(high)), Some(median as f64))
        };
        let estimate = job.estimate_ns.map_or_else(|| HtmlCell::text("–"), estimate);
        let cells = [
            HtmlCell::text(format!("{}#{}", job.task, job.job)),
            HtmlCell::figure(job.core.map_or("–".into(), |core| core.to_string()), job.core.map(|core| core as f64)),
            HtmlCell::figure(format!("{:.4}", job.q), Some(f64::from(job.q))),
            ms(job.due_in_ns),
            ms(job.slack_ns),
            ms(job.remaining_ns as i64),
            HtmlCell::figure(job.row.to_string(), Some(f64::from(job.row))),
            HtmlCell::figure(format!("{:.1}%", 100.0 * job.attention), Some(f64::from(job.attention))),
            estimate,
        ];
        let shown = &cells[..cells.len() - usize::from(!is_estimated)];
        table.row(if job.core.is_some() { "chosen" } else { "" }, shown);
    }
    let bold = match decision.held.iter().any(Option::is_some) {
        true => "Bold: chosen by the network, or on a core that the job holds.",
        false => "Bold: chosen by the network.",
    };
    Page::new(&set.name)
        .kind("a decision")
        .lead(facts)
        .section("Ready jobs", bold, &table.finish())
        .section(
            "Attention",
            "Each row (query) attends to the columns (keys). Jobs that the network cannot tell apart share a row. Brighter is more, from 0 to 1.",
            &figures(&maps),
        )
        .finish()
}

const COLUMNS: [(&str, &str); 9] = [
    ("job", ""),
    ("core", "the core that the network's own choice gives it"),
    ("Q", "its Q-value"),
    ("due in", "time to its deadline"),
    ("slack", "at the wcet; negative: late by wcet"),
    ("remaining", "remaining wcet"),
    ("token", "its row in the attention maps, counted from 1"),
    ("attention", "what the decision token pays to its row in the last layer, mean over heads"),
    ("estimate", "of the whole execution time: median, ninth decile"),
];

/// Returns the names of the rows of the attention maps: idle, then the jobs of each token.
fn row_names(network: &Explanation) -> Vec<String> {
    let name = |row: usize| {
        let jobs = || network.jobs.iter().filter(|job| job.row as usize == row);
        let Some(first) = jobs().next() else { return row.to_string() };
        let first = format!("{}#{}", first.task, first.job);
        match jobs().count() {
            1 => first,
            count => format!("{first} +{}", count - 1),
        }
    };
    [IDLE.to_string()].into_iter().chain((1..=network.rows.len()).map(name)).collect()
}

const IDLE: &str = "idle (decision)";
/// Number of keys that the table beside a map names for each query.
const NAMED: usize = 3;

/// Greatest number of rows of a map whose cells have tooltips. In larger maps they would make up most of the page.
const MOST_TOLD: usize = 40;

/// Returns the side of a cell, in pixels; smaller in maps with many rows.
fn side(rows: usize) -> f64 {
    (420.0 / rows.max(1) as f64).clamp(4.0, 26.0)
}

fn heat_map(map: &AttentionMap, names: &[String]) -> String {
    let size = side(map.weights.len());
    let grid = Grid {
        x_label: "key".into(),
        y_label: "query".into(),
        columns: names.to_vec(),
        rows: names.to_vec(),
        cells: map.weights.iter().map(|row| row.iter().map(|weight| Some(f64::from(*weight))).collect()).collect(),
        label: None,
        cell: Some((size, size)),
        span: Some((0.0, 1.0)),
    };
    let name = |row: usize| names.get(row).map_or("", String::as_str);
    let says = |query: usize, key: usize| {
        let words = || format!("{} attends to {}: {:.1}%", name(query), name(key), 100.0 * map.weights[query][key]);
        (names.len() <= MOST_TOLD).then(words)
    };
    let mut table = HtmlTable::new().columns(&["query", "attends most to"]);
    for (query, weights) in map.weights.iter().enumerate() {
        let mut keys: Vec<usize> = (0..weights.len()).collect();
        keys.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
        let words = keys.iter().take(NAMED).map(|key| format!("{} {:.0}%", name(*key), 100.0 * weights[*key]));
        table.row(
            "",
            &[HtmlCell::text(name(query)), HtmlCell::text(words.collect::<Vec<_>>().join(", ")).class("words")],
        );
    }
    let caption = format!("layer {}, head {}", map.layer + 1, map.head + 1);
    figure(&caption, &(grid.picture(says).inline() + &folded("in words", &table.finish())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use temponet::stages::{Learned, Tokenizer};
    use temponet::{Model, Options};
    use temponet_task::{Preemption, Protocol, ResourceId, Section, Task};

    fn explained(set: &TaskSet, at: Time) -> ExplainedDecision {
        let model = std::sync::Arc::new(Model::random(Tokenizer::full(), 1));
        let learned = || Learned::new(model.clone(), Options::default()).unwrap();
        let (scheduler, plain) = (&mut learned(), &mut learned());
        let run = ModelRun { set, seed: 1, horizon: Time::from_ms(50), model: &model, scheduler, plain };
        explain_at(run, at).unwrap().unwrap()
    }

    #[test]
    fn a_job_that_holds_its_core_is_no_choice_of_the_network() {
        let ms = Time::from_ms;
        let mut tasks = vec![Task::periodic("gpu", ms(50), ms(20)), Task::periodic("other", ms(50), ms(1))];
        (tasks[0].preemption, tasks[1].offset) = (Preemption::None, ms(5));
        let mut set = TaskSet::new("s", tasks, 1);
        let facts = |set: &TaskSet| facts(&explained(set, ms(5)), None, None);
        let only = facts(&set);
        assert!(
            only.starts_with("At 5ms gpu#0 holds its core until its next preemption point, so there was"),
            "{only}"
        );
        assert!(!only.contains("wanted") && !only.contains("EDF"), "{only}");
        set.system.set_cores(2);
        let beside = facts(&set);
        assert!(beside.contains("wanted gpu#0, other#0"), "{beside}");
        assert!(
            beside.contains("gpu#0 holds its core until its next preemption point, whatever is wanted."),
            "{beside}"
        );
        set.system.tasks_mut()[0].preemption = Preemption::Free;
        assert!(!facts(&set).contains("holds"), "{}", facts(&set));
    }

    #[test]
    fn a_job_that_waits_for_a_resource_is_named_with_the_one_in_its_place() {
        let ms = Time::from_ms;
        let section = |length: u64| vec![Section { resource: ResourceId(0), at: Time::ZERO, length: ms(length) }];
        let mut tasks = vec![Task::periodic("low", ms(50), ms(20)), Task::periodic("high", ms(50), ms(1))];
        (tasks[0].sections, tasks[1].sections, tasks[1].offset) = (section(20), section(1), ms(5));
        let mut set = TaskSet::new("s", tasks, 2).with_resources(vec!["bus".into()]);
        let decision = explained(&set, ms(5));
        let waiting = decision.waiting.iter().find(|waiting| waiting.job == "high#0").unwrap();
        assert_eq!((waiting.resource.as_str(), waiting.holder.as_str()), ("bus", "low#0"));
        let words = facts(&decision, None, None);
        assert!(
            words.contains("high#0 waits for bus, held by low#0; if it is chosen, low#0 runs in its place."),
            "{words}"
        );
        set.system.set_protocol(Protocol::None);
        let words = facts(&explained(&set, ms(5)), None, None);
        assert!(words.contains("held by low#0; nothing runs in its place."), "{words}");
    }

    #[test]
    fn attention_maps_name_the_jobs_on_both_axes() {
        let ms = Time::from_ms;
        let tasks = vec![Task::periodic("a<b", ms(10), ms(6)), Task::periodic("wing", ms(14), ms(9))];
        let set = TaskSet::new("s", tasks, 1);
        let found = explained(&set, ms(0));
        let page = page(&set, &found, "facts");
        let maps = found.network.attention.len();
        for name in ["a&lt;b#0", "wing#0", IDLE] {
            assert_eq!(page.matches(&format!(">{name}</text>")).count(), 2 * maps, "{name}");
        }
        assert!(page.contains("idle (decision) attends to wing#0: ") && !page.contains("a<b"));
    }
}
