//! One decision of the learned scheduler, found in a run and laid open for people.

use std::fmt::Write;

use temponet::Model;
use temponet::diagnostics::{AttentionMap, Explanation, explain};
use temponet_sched::global_edf;
use temponet_sim::{Engine, SimError, Unobserved};
use temponet_task::{Assignment, JobId, Scheduler, SystemView, TaskSet, Time};

use crate::gantt::escape;
use crate::report::STYLE;

/// A decision and what others would have done.
#[derive(Clone, Debug)]
pub struct ExplainedDecision {
    /// What the network saw and said.
    pub network: Explanation,
    /// What was done in the end: the job on each core as `task#number`.
    pub done: Vec<Option<String>>,
    /// What the network alone wanted.
    pub wanted: Vec<Option<String>>,
    /// What EDF would have done.
    pub edf: Vec<Option<String>>,
}

/// Runs `scheduler` on the set until the first decision at or after `at` with a job ready; none if there is none before the horizon.
/// `plain` is the same model without anything around it.
pub fn explain_at(
    set: &TaskSet,
    seed: u64,
    horizon: Time,
    at: Time,
    model: &Model,
    scheduler: &mut dyn Scheduler,
    plain: &mut dyn Scheduler,
) -> Result<Option<ExplainedDecision>, SimError> {
    let system = set.system();
    let mut edf = global_edf();
    scheduler.start(&system).map_err(SimError::NotApplicable)?;
    plain.start(&system).map_err(SimError::NotApplicable)?;
    edf.start(&system).map_err(SimError::NotApplicable)?;
    let mut engine = Engine::new(set, seed, horizon);
    let [mut done, mut wanted, mut earliest] = [(); 3].map(|()| Assignment::default());
    while engine.advance(&mut Unobserved) {
        let view = engine.view();
        for assignment in [&mut done, &mut wanted, &mut earliest] {
            assignment.reset(set.cores);
        }
        scheduler.decide(&view, &mut done);
        plain.decide(&view, &mut wanted);
        edf.decide(&view, &mut earliest);
        if view.now >= at && !view.active.is_empty() {
            let names = |assignment: &Assignment| assignment.cores().iter().map(|job| name(&view, *job)).collect();
            let network = explain(model, &view, &wanted);
            return Ok(Some(ExplainedDecision {
                network,
                done: names(&done),
                wanted: names(&wanted),
                edf: names(&earliest),
            }));
        }
        engine.apply(&done, &mut Unobserved)?;
    }
    Ok(None)
}

fn name(view: &SystemView<'_>, id: Option<JobId>) -> Option<String> {
    let job = view.job(id?);
    Some(format!("{}#{}", view.task_of(job).name, job.number))
}

/// A page: the jobs, and every head's attention as a heat map.
pub fn page(set: &TaskSet, decision: &ExplainedDecision, facts: &str) -> String {
    let network = &decision.network;
    let mut body = String::from(
        "<section><h2>Attention</h2><p class=\"hint\">Rows ask, columns are asked; row and column 0 are the idle token, the others the \
         distinct tokens by number. Darker is more.</p>\n",
    );
    for map in &network.attention {
        body += &heat_map(map);
    }
    body += "</section>\n<section><h2>Ready jobs</h2><div class=\"scroll\"><table><tr><th>job</th><th>core</th><th>Q</th><th>due in</th>\
             <th>slack</th><th>remaining</th><th>token</th><th>attention</th></tr>\n";
    for job in &network.jobs {
        let ms = |ns: i64| format!("{:.3} ms", ns as f64 / 1e6);
        let _ = writeln!(
            body,
            "<tr><td>{}#{}</td><td>{}</td><td>{:.4}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.1}%</td></tr>",
            escape(&job.task),
            job.job,
            job.core.map_or("–".into(), |core| core.to_string()),
            job.q,
            ms(job.due_in_ns),
            ms(job.slack_ns),
            ms(job.remaining_ns as i64),
            job.row,
            100.0 * job.attention
        );
    }
    body += "</table></div></section>\n";
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{name} · a decision · TempoNet</title>\n\
         <style>{STYLE}\nfigure {{ display: inline-block; margin: 0 18px 18px 0; }}</style>\n<header><h1>{name}</h1><p>{facts}</p></header>\n{body}",
        name = escape(&set.name),
        facts = escape(facts),
    )
}

/// Side of a heat map's cell; smaller where there are many.
fn cell(rows: usize) -> f64 {
    (360.0 / rows as f64).clamp(1.0, 28.0)
}

fn heat_map(map: &AttentionMap) -> String {
    let size = cell(map.weights.len());
    let side = size * map.weights.len() as f64;
    let mut out = format!(
        "<figure><figcaption>layer {}, head {}</figcaption><svg width=\"{side}\" height=\"{side}\" viewBox=\"0 0 {side} {side}\">",
        map.layer + 1,
        map.head + 1
    );
    for (query, weights) in map.weights.iter().enumerate() {
        for (key, weight) in weights.iter().enumerate() {
            let _ = write!(
                out,
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{size:.1}\" height=\"{size:.1}\" fill=\"#0b6e4f\" fill-opacity=\"{weight:.3}\"/>",
                key as f64 * size,
                query as f64 * size
            );
        }
    }
    out + &format!("<rect width=\"{side}\" height=\"{side}\" fill=\"none\" stroke=\"#dfe5ea\"/></svg></figure>\n")
}
