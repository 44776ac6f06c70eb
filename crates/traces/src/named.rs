//! Events of formats that name their fields: CTF and the text of babeltrace2. A kind of event says which fields it
//! wants, whoever reads them fills an array in that order, and here they become an event.

use crate::event::{Initialized, Layer, Leaving, NO_PRIORITY, Names, Party, What};

/// Value of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Absent,
    Number(i64),
    Text(&'a [u8]),
}

/// Kinds of events that mean something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Switch,
    Wake { is_new: bool },
    NodeInit,
    PublisherInit,
    SubscriptionInit,
    SubscriptionObject,
    SubscriptionCallback,
    TimerInit,
    TimerNode,
    TimerCallback,
    ServiceInit,
    ServiceCallback,
    Symbol,
    CallbackStart,
    CallbackEnd,
    Publish(Layer),
}

/// Most fields that a kind wants.
pub(crate) const MOST_FIELDS: usize = 9;

impl Kind {
    /// Returns the kind of events with this name.
    pub fn of(name: &[u8]) -> Option<Kind> {
        let name = name.strip_prefix(b"sched:").unwrap_or(name);
        Some(match name {
            b"sched_switch" => Kind::Switch,
            b"sched_wakeup" | b"sched_waking" => Kind::Wake { is_new: false },
            b"sched_wakeup_new" => Kind::Wake { is_new: true },
            b"ros2:rcl_node_init" => Kind::NodeInit,
            b"ros2:rcl_publisher_init" => Kind::PublisherInit,
            b"ros2:rcl_subscription_init" => Kind::SubscriptionInit,
            b"ros2:rclcpp_subscription_init" => Kind::SubscriptionObject,
            b"ros2:rclcpp_subscription_callback_added" => Kind::SubscriptionCallback,
            b"ros2:rcl_timer_init" => Kind::TimerInit,
            b"ros2:rclcpp_timer_link_node" => Kind::TimerNode,
            b"ros2:rclcpp_timer_callback_added" => Kind::TimerCallback,
            b"ros2:rcl_service_init" => Kind::ServiceInit,
            b"ros2:rclcpp_service_callback_added" => Kind::ServiceCallback,
            b"ros2:rclcpp_callback_register" => Kind::Symbol,
            b"ros2:callback_start" => Kind::CallbackStart,
            b"ros2:callback_end" => Kind::CallbackEnd,
            b"ros2:rclcpp_publish" => Kind::Publish(Layer::Rclcpp),
            b"ros2:rcl_publish" => Kind::Publish(Layer::Rcl),
            b"ros2:rclcpp_intra_publish" => Kind::Publish(Layer::Intra),
            _ => return None,
        })
    }

    /// Names of the fields that it wants.
    pub fn fields(self) -> &'static [&'static str] {
        match self {
            Kind::Switch => &[
                "prev_comm",
                "prev_tid",
                "prev_pid",
                "prev_prio",
                "prev_state",
                "next_comm",
                "next_tid",
                "next_pid",
                "next_prio",
            ],
            Kind::Wake { .. } => &["comm", "tid", "pid", "prio", "success"],
            Kind::NodeInit => &["node_handle", "node_name", "namespace"],
            Kind::PublisherInit => &["publisher_handle", "topic_name"],
            Kind::SubscriptionInit => &["subscription_handle", "node_handle", "topic_name"],
            Kind::SubscriptionObject => &["subscription", "subscription_handle"],
            Kind::SubscriptionCallback => &["subscription", "callback"],
            Kind::TimerInit => &["timer_handle", "period"],
            Kind::TimerNode => &["timer_handle", "node_handle"],
            Kind::TimerCallback => &["timer_handle", "callback"],
            Kind::ServiceInit => &["service_handle", "node_handle", "service_name"],
            Kind::ServiceCallback => &["service_handle", "callback"],
            Kind::Symbol => &["callback", "symbol"],
            Kind::CallbackStart | Kind::CallbackEnd => &["callback"],
            Kind::Publish(_) => &["publisher_handle"],
        }
    }

    /// Returns what happened; none if a field is missing. A wake-up of a thread that was awake is none as well.
    pub fn event(self, values: &[Value<'_>; MOST_FIELDS], names: &mut Names) -> Option<What> {
        let address = |at: usize| match values[at] {
            Value::Number(number) => Some(number as u64),
            _ => None,
        };
        let text = |at: usize| match values[at] {
            Value::Text(text) => Some(String::from_utf8_lossy(&text[..text.len().min(1024)]).into_owned()),
            _ => None,
        };
        let ros = |init| Some(What::Ros(Box::new(init)));
        match self {
            Kind::Switch => {
                let from = party(&values[..4], names)?;
                let to = party(&values[5..], names)?;
                let leaving = match values[4] {
                    Value::Number(state) => Leaving::of_number(state as u64),
                    Value::Text(letters) => Leaving::of_letters(letters)?,
                    Value::Absent => return None,
                };
                Some(What::Switch { from, leaving, to })
            }
            Kind::Wake { is_new } => match values[4] {
                Value::Number(0) => None,
                _ => Some(What::Wake { who: party(&values[..4], names)?, is_new }),
            },
            Kind::NodeInit => {
                let (name, space) = (text(1)?, text(2).unwrap_or_default());
                let name = match space.trim_end_matches('/') {
                    "" => format!("/{name}"),
                    space => format!("{space}/{name}"),
                };
                ros(Initialized::Node { node: address(0)?, name })
            }
            Kind::PublisherInit => ros(Initialized::Publisher { publisher: address(0)?, topic: text(1)? }),
            Kind::SubscriptionInit => {
                ros(Initialized::Subscription { handle: address(0)?, node: address(1)?, topic: text(2)? })
            }
            Kind::SubscriptionObject => {
                ros(Initialized::SubscriptionObject { object: address(0)?, handle: address(1)? })
            }
            Kind::SubscriptionCallback => {
                ros(Initialized::SubscriptionCallback { object: address(0)?, callback: address(1)? })
            }
            Kind::TimerInit => ros(Initialized::Timer { timer: address(0)?, period: address(1)? }),
            Kind::TimerNode => ros(Initialized::TimerNode { timer: address(0)?, node: address(1)? }),
            Kind::TimerCallback => ros(Initialized::TimerCallback { timer: address(0)?, callback: address(1)? }),
            Kind::ServiceInit => ros(Initialized::Service { service: address(0)?, node: address(1)?, name: text(2)? }),
            Kind::ServiceCallback => ros(Initialized::ServiceCallback { service: address(0)?, callback: address(1)? }),
            Kind::Symbol => ros(Initialized::Symbol { callback: address(0)?, symbol: text(1)? }),
            Kind::CallbackStart => Some(What::CallbackStart(address(0)?)),
            Kind::CallbackEnd => Some(What::CallbackEnd(address(0)?)),
            Kind::Publish(layer) => Some(What::Publish { publisher: address(0)?, layer }),
        }
    }
}

/// Difference between priorities of the kernel and those that LTTng records.
const LTTNG_PRIORITY: i64 = 100;

/// Reads `comm`, `tid` or `pid`, and `prio`. LTTng calls the number of a thread `tid` and counts priorities from 100.
fn party(values: &[Value<'_>], names: &mut Names) -> Option<Party> {
    let [comm, tid, pid, priority, ..] = values else { return None };
    let name = match comm {
        Value::Text(text) => names.number(text),
        _ => Names::UNKNOWN,
    };
    let (tid, shift) = match (tid, pid) {
        (Value::Number(tid), _) => (*tid, LTTNG_PRIORITY),
        (_, Value::Number(pid)) => (*pid, 0),
        _ => return None,
    };
    let priority = match priority {
        Value::Number(priority) => i32::try_from(priority.checked_add(shift)?).ok()?,
        _ => NO_PRIORITY,
    };
    Some(Party { tid: i32::try_from(tid).ok()?, name, priority })
}

/// Names of the thread that was running and of its process, in the contexts of tracers.
pub(crate) const THREAD_FIELDS: [&str; 3] = ["vtid", "tid", "perf_tid"];
pub(crate) const PROCESS_FIELDS: [&str; 3] = ["vpid", "pid", "perf_pid"];
