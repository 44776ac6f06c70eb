//! ROS 2 as its tracepoints show it: which callback belongs to which node, timer and topic, and which callback publishes what.
//!
//! Objects are known by their addresses, within their process. What was initialized before the trace began is unknown,
//! and its name says so.

use std::collections::{BTreeMap, HashMap};

use crate::event::{Initialized, Layer};

/// An address in a process.
pub(crate) type Handle = (i32, u64);

/// What a callback is called by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    Timer { period: Option<u64> },
    Topic(String),
    Service(String),
    Unknown,
}

/// Most objects that are kept.
const MOST: usize = 1 << 17;

/// Everything that was initialized.
#[derive(Default)]
pub(crate) struct Ros {
    nodes: HashMap<Handle, String>,
    publishers: HashMap<Handle, String>,
    /// Node and topic of a subscription.
    subscriptions: HashMap<Handle, (Handle, String)>,
    subscription_objects: HashMap<Handle, Handle>,
    timers: HashMap<Handle, u64>,
    timer_nodes: HashMap<Handle, Handle>,
    services: HashMap<Handle, (Handle, String)>,
    callbacks: HashMap<Handle, Owner>,
    symbols: HashMap<Handle, String>,
    /// Publications, by task, publisher and layer.
    published: BTreeMap<(usize, Handle, Layer), u64>,
    /// Publications outside of callbacks.
    pub outside: u64,
    count: usize,
}

#[derive(Clone, Copy)]
enum Owner {
    Subscription(Handle),
    Timer(Handle),
    Service(Handle),
}

impl Ros {
    /// Takes down what was initialized in a process.
    pub fn initialize(&mut self, pid: i32, what: Initialized) {
        self.count += 1;
        if self.count > MOST {
            return;
        }
        match what {
            Initialized::Node { node, name } => drop(self.nodes.insert((pid, node), name)),
            Initialized::Publisher { publisher, topic } => drop(self.publishers.insert((pid, publisher), topic)),
            Initialized::Subscription { handle, node, topic } => {
                self.subscriptions.insert((pid, handle), ((pid, node), topic));
            }
            Initialized::SubscriptionObject { object, handle } => {
                self.subscription_objects.insert((pid, object), (pid, handle));
            }
            Initialized::SubscriptionCallback { object, callback } => {
                self.callbacks.insert((pid, callback), Owner::Subscription((pid, object)));
            }
            Initialized::Timer { timer, period } => drop(self.timers.insert((pid, timer), period)),
            Initialized::TimerNode { timer, node } => drop(self.timer_nodes.insert((pid, timer), (pid, node))),
            Initialized::TimerCallback { timer, callback } => {
                self.callbacks.insert((pid, callback), Owner::Timer((pid, timer)));
            }
            Initialized::Service { service, node, name } => {
                self.services.insert((pid, service), ((pid, node), name));
            }
            Initialized::ServiceCallback { service, callback } => {
                self.callbacks.insert((pid, callback), Owner::Service((pid, service)));
            }
            Initialized::Symbol { callback, symbol } => drop(self.symbols.insert((pid, callback), symbol)),
        }
    }

    /// A task publishes. Each layer of ROS 2 reports it; most tell the handle.
    pub fn publish(&mut self, task: usize, publisher: Handle, layer: Layer) {
        if self.published.len() < MOST {
            *self.published.entry((task, publisher, layer)).or_default() += 1;
        }
    }

    /// What a callback is called by.
    pub fn trigger(&self, callback: Handle) -> Trigger {
        match self.callbacks.get(&callback) {
            Some(Owner::Subscription(object)) => match self.subscription(*object) {
                Some((_, topic)) => Trigger::Topic(topic.clone()),
                None => Trigger::Unknown,
            },
            Some(Owner::Timer(timer)) => Trigger::Timer { period: self.timers.get(timer).copied() },
            Some(Owner::Service(service)) => match self.services.get(service) {
                Some((_, name)) => Trigger::Service(name.clone()),
                None => Trigger::Unknown,
            },
            None => Trigger::Unknown,
        }
    }

    /// Node and topic of a subscription by its object, whose handle may be missing.
    fn subscription(&self, object: Handle) -> Option<&(Handle, String)> {
        let handle = self.subscription_objects.get(&object).copied().unwrap_or(object);
        self.subscriptions.get(&handle)
    }

    /// Name of a callback: its node, and what it is called by.
    pub fn name(&self, callback: Handle) -> String {
        let named =
            |node: Option<&Handle>| node.and_then(|node| self.nodes.get(node)).map_or("<unknown node>", String::as_str);
        match self.callbacks.get(&callback) {
            Some(Owner::Subscription(object)) => match self.subscription(*object) {
                Some((node, topic)) => format!("{}: {topic}", named(Some(node))),
                None => format!("<unknown node>: <unknown topic {:#x}>", object.1),
            },
            Some(Owner::Timer(timer)) => {
                let node = named(self.timer_nodes.get(timer));
                match self.timers.get(timer) {
                    Some(period) => format!("{node}: timer {}", temponet_task::Time(*period)),
                    None => format!("{node}: <unknown timer {:#x}>", timer.1),
                }
            }
            Some(Owner::Service(service)) => match self.services.get(service) {
                Some((node, name)) => format!("{}: service {name}", named(Some(node))),
                None => format!("<unknown node>: <unknown service {:#x}>", service.1),
            },
            None => match self.symbols.get(&callback) {
                Some(symbol) => format!("<unknown node>: {symbol}"),
                None => format!("<unknown callback {:#x}>", callback.1),
            },
        }
    }

    /// Publications of tasks by topic; those of publishers that are not known have none.
    pub fn publications(&self) -> BTreeMap<(usize, Option<String>), u64> {
        // The layers tell of the same publication, so the largest count is that of the publisher.
        let mut by_publisher: BTreeMap<(usize, Handle), u64> = BTreeMap::new();
        for ((task, publisher, _), count) in &self.published {
            let most = by_publisher.entry((*task, *publisher)).or_default();
            *most = (*most).max(*count);
        }
        let mut by_topic = BTreeMap::new();
        for ((task, publisher), count) in by_publisher {
            let topic = self.publishers.get(&publisher).cloned();
            *by_topic.entry((task, topic)).or_default() += count;
        }
        by_topic
    }
}
