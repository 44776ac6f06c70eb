//! Schedulers around other schedulers: a shield, a stopwatch, a pointer.
//!
//! A wrapper says only what it changes. Everything else goes to the scheduler inside, also what [`Scheduler`] has a
//! default for: a wrapper that fell back on a default would take jobs, counters or limits from the scheduler that it
//! wraps. This is the only place that forwards, and Clippy refuses it if the contract gets a method that it leaves out.

use alloc::{boxed::Box, vec::Vec};

use crate::{Assignment, NotApplicable, Scheduler, System, SystemView};

/// Says in an implementation of [`Wrapper`] which field holds the scheduler inside, and its type: `wraps!(inner: S);`.
#[macro_export]
macro_rules! wraps {
    ($field:tt: $inner:ty) => {
        type Inner = $inner;

        fn inner(&self) -> &Self::Inner {
            &self.$field
        }

        fn inner_mut(&mut self) -> &mut Self::Inner {
            &mut self.$field
        }
    };
}

/// A scheduler around another one, which is [`Wrapper::Inner`]. Whatever a wrapper does not define goes to the
/// scheduler inside.
///
/// Every wrapper is a [`Scheduler`]. Import that trait and name this one by its path, because both have the same
/// methods. Where the scheduler inside is a wrapper itself, such as a box, call it as `Scheduler::decide(&mut
/// self.inner, …)`.
///
/// ```
/// use temponet_task::{Assignment, Scheduler, SystemView};
///
/// /// Counts the decisions of a scheduler.
/// struct Counted<S> {
///     inner: S,
///     decisions: u64,
/// }
///
/// impl<S: Scheduler> temponet_task::Wrapper for Counted<S> {
///     temponet_task::wraps!(inner: S);
///
///     fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
///         self.decisions += 1;
///         self.inner.decide(view, assignment);
///     }
/// }
/// ```
pub trait Wrapper: Send {
    /// The scheduler inside.
    type Inner: Scheduler + ?Sized;

    /// Returns the scheduler inside.
    fn inner(&self) -> &Self::Inner;

    /// Returns the scheduler inside, to call it.
    fn inner_mut(&mut self) -> &mut Self::Inner;

    /// See [`Scheduler::start`].
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        self.inner_mut().start(system)
    }

    /// See [`Scheduler::decide`].
    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        self.inner_mut().decide(view, assignment);
    }

    /// See [`Scheduler::watch`]. A wrapper with a state of past events takes note of them here, too.
    fn watch(&mut self, view: &SystemView<'_>, scratch: &mut Assignment) {
        self.inner_mut().watch(view, scratch);
    }

    /// See [`Scheduler::most_ready`].
    fn most_ready(&self) -> usize {
        self.inner().most_ready()
    }

    /// See [`Scheduler::counters`].
    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.inner().counters()
    }
}

#[deny(clippy::missing_trait_methods)]
impl<W: Wrapper> Scheduler for W {
    fn start(&mut self, system: &System) -> Result<(), NotApplicable> {
        Wrapper::start(self, system)
    }

    fn decide(&mut self, view: &SystemView<'_>, assignment: &mut Assignment) {
        Wrapper::decide(self, view, assignment);
    }

    fn watch(&mut self, view: &SystemView<'_>, scratch: &mut Assignment) {
        Wrapper::watch(self, view, scratch);
    }

    fn most_ready(&self) -> usize {
        Wrapper::most_ready(self)
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        Wrapper::counters(self)
    }
}

/// Makes a pointer to a scheduler a wrapper.
macro_rules! pointer {
    ($pointer:ty) => {
        impl<S: Scheduler + ?Sized> Wrapper for $pointer {
            type Inner = S;

            fn inner(&self) -> &S {
                self
            }

            fn inner_mut(&mut self) -> &mut S {
                self
            }
        }
    };
}
pointer!(Box<S>);
pointer!(&mut S);
