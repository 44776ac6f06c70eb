//! Critical sections in a schedule: bars are hatched where their job holds a resource, and an open box stands where a
//! job waits for one. A stripe below both has the color of the resource.

use temponet_page::svg::{Svg, SvgShape, fill, path, rect};
use temponet_sim::{Recorder, Stretch};
use temponet_task::{CoreId, ResourceId, TaskId, TaskSet, Time};

use super::BAR;

/// Height of the stripe of a resource.
const STRIPE: f64 = 4.0;
/// Distance between two lines of a hatched bar.
const HATCH: f64 = 6.0;

/// Places in a picture.
pub(super) struct Places<X, Y> {
    /// Place of a date on the time axis.
    pub x: X,
    /// Upper edge of the bar in the row of a task and core.
    pub top: Y,
    /// Whether tasks have rows of their own. Otherwise a job that waits has no place.
    pub by_task: bool,
}

/// Returns the class of a resource's color. It is not that of the first tasks.
fn colour(set: &TaskSet, resource: ResourceId) -> String {
    fill(set.tasks().len() + resource.index())
}

/// Draws the sections and waits of a schedule before `until`.
pub(super) fn draw(
    out: &mut Svg,
    set: &TaskSet,
    recording: &Recorder,
    until: Time,
    places: &Places<impl Fn(Time) -> f64, impl Fn(TaskId, CoreId) -> f64>,
) {
    let name = |stretch: &Stretch| {
        let (task, resource) = (&set.tasks()[stretch.task].name, &set.resources()[stretch.resource]);
        (format!("{task} #{}", stretch.number), resource.clone())
    };
    for hold in recording.holds.iter().filter(|hold| hold.start < until) {
        let of_job = recording.slices.iter().filter(|slice| (slice.task, slice.number) == (hold.task, hold.number));
        for slice in of_job {
            let (start, end) = (slice.start.max(hold.start), slice.end.min(hold.end).min(until));
            if start >= end {
                continue;
            }
            let (left, right, top) = ((places.x)(start), (places.x)(end), (places.top)(slice.task, slice.core));
            let (job, resource) = name(hold);
            let words = format!("{job} holds {resource}: {} to {}", hold.start, hold.end);
            out.add(hatched(left, right, top).title(&words));
            out.add(rect(left, top + BAR, right - left, STRIPE).class(&colour(set, hold.resource)).title(&words));
        }
    }
    for wait in recording.waits.iter().filter(|wait| wait.start < until && places.by_task) {
        let (left, right) = ((places.x)(wait.start), (places.x)(wait.end.min(until)));
        let top = (places.top)(wait.task, CoreId(0));
        let (job, resource) = name(wait);
        let words = format!("{job} waits for {resource}: {} to {}", wait.start, wait.end);
        out.add(rect(left, top + 3.0, right - left, BAR - 6.0).class("wait").dashed("1 2").title(&words));
        out.add(rect(left, top + BAR, right - left, STRIPE).class(&colour(set, wait.resource)).title(&words));
    }
}

/// Returns the lines of a hatched bar.
fn hatched(left: f64, right: f64, top: f64) -> SvgShape {
    let mut steps = String::new();
    // A line rises by as much as it goes to the right.
    let mut foot = left - BAR + HATCH;
    while foot < right {
        let (from, to) = (foot.max(left), (foot + BAR).min(right));
        if from < to {
            steps += &format!("M{from:.2} {:.2}L{to:.2} {:.2}", top + BAR - (from - foot), top + BAR - (to - foot));
        }
        foot += HATCH;
    }
    path(left, top, &steps).class("ring").set("stroke-width", "1.6")
}

/// Entries of the legend.
pub(super) fn legend(set: &TaskSet, by_task: bool) -> Vec<(SvgShape, String)> {
    let resource = |(index, name): (u32, &String)| {
        (rect(0.0, -2.0, 12.0, STRIPE).class(&colour(set, ResourceId(index))), name.clone())
    };
    let mut entries: Vec<(SvgShape, String)> = (0..).zip(set.resources()).take(8).map(resource).collect();
    if by_task && !set.resources().is_empty() {
        entries.push((rect(0.0, -6.0, 12.0, 12.0).class("wait").dashed("1 2"), "waits for it".into()));
    }
    entries
}
