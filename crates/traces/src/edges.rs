//! Edges of a task set from publications: `after` where each job of one callback calls one of the other, `reads` elsewhere.

use std::collections::BTreeMap;

use crate::ros::Trigger;

/// A task as its publications see it.
pub(crate) struct Node {
    pub trigger: Trigger,
    pub jobs: u64,
    /// Number of jobs that are left out, which a count may be off by.
    pub dropped: u64,
}

/// Edges to a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Incoming {
    /// Task that this one comes after.
    pub after: Option<usize>,
    pub reads: Vec<usize>,
    /// Why it does not come after them.
    pub why: Option<String>,
}

/// Share by which numbers of jobs may differ that are those of one chain.
const TOLERANCE: f64 = 0.02;

/// Returns the edges to each task.
pub(crate) fn edges(nodes: &[Node], published: &BTreeMap<(usize, Option<String>), u64>) -> Vec<Incoming> {
    let mut incoming = vec![Incoming::default(); nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        let Trigger::Topic(topic) = &node.trigger else { continue };
        let from = published.iter().filter(|((_, of), _)| of.as_ref() == Some(topic));
        let publishers: Vec<(usize, u64)> = from.map(|((task, _), count)| (*task, *count)).collect();
        let others: Vec<usize> = publishers.iter().map(|(task, _)| *task).filter(|task| *task != at).collect();
        incoming[at] = match &publishers[..] {
            [] => Incoming::default(),
            [(task, count)] if *task != at => {
                let before = &nodes[*task];
                let slack = 3 + node.dropped + before.dropped;
                if !is_same(before.jobs, *count, slack) {
                    let why = format!("{} jobs before it publish {count} times", before.jobs);
                    Incoming { after: None, reads: others, why: Some(why) }
                } else if !is_same(*count, node.jobs, slack) {
                    let why = format!("{count} publications call it {} times", node.jobs);
                    Incoming { after: None, reads: others, why: Some(why) }
                } else {
                    Incoming { after: Some(*task), reads: Vec::new(), why: None }
                }
            }
            _ => Incoming {
                after: None,
                reads: others,
                why: Some(format!("{} callbacks publish on {topic}", publishers.len())),
            },
        };
    }
    cut_circles(&mut incoming);
    incoming
}

fn is_same(a: u64, b: u64, slack: u64) -> bool {
    a.abs_diff(b) as f64 <= slack as f64 + TOLERANCE * a.max(b) as f64
}

/// Makes a read of one edge of each circle: a job cannot come after itself.
fn cut_circles(incoming: &mut [Incoming]) {
    for start in 0..incoming.len() {
        let mut at = start;
        for _ in 0..incoming.len() {
            let Some(before) = incoming[at].after else { break };
            if before == start {
                let edge = &mut incoming[start];
                edge.reads.extend(edge.after.take());
                edge.why = Some("it comes after itself, over others".into());
                break;
            }
            at = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(name: &str, jobs: u64) -> Node {
        Node { trigger: Trigger::Topic(name.into()), jobs, dropped: 0 }
    }

    fn published(all: &[(usize, &str, u64)]) -> BTreeMap<(usize, Option<String>), u64> {
        all.iter().map(|(task, topic, count)| ((*task, Some(topic.to_string())), *count)).collect()
    }

    #[test]
    fn one_job_for_each_publication_comes_after() {
        let timer = Node { trigger: Trigger::Timer { period: None }, jobs: 100, dropped: 0 };
        let nodes = [timer, topic("/a", 99), topic("/b", 33), topic("/c", 10), topic("/d", 5)];
        let edges =
            edges(&nodes, &published(&[(0, "/a", 100), (1, "/b", 33), (0, "/c", 5), (2, "/c", 5), (9, "/e", 1)]));
        assert_eq!(edges[1], Incoming { after: Some(0), reads: vec![], why: None });
        assert_eq!((edges[2].after, &edges[2].reads[..]), (None, &[1][..]));
        assert_eq!((edges[3].after, &edges[3].reads[..]), (None, &[0, 2][..]));
        assert_eq!(edges[4], Incoming::default());
    }

    #[test]
    fn a_circle_is_cut_once() {
        let nodes = [topic("/a", 50), topic("/b", 50), topic("/c", 50)];
        let edges = edges(&nodes, &published(&[(0, "/b", 50), (1, "/c", 50), (2, "/a", 50)]));
        let after: Vec<_> = edges.iter().map(|edge| edge.after).collect();
        assert_eq!(after, [None, Some(0), Some(1)]);
        assert_eq!(edges[0].reads, [2]);
    }
}
