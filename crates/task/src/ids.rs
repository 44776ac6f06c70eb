//! Typed ids: which task, which core, which resource. Each is the place of the thing in the lists of its system.
//!
//! Whatever is kept by task, by core or by resource is a slice or a vector that the id indexes: `tasks[job.task]`. An
//! id of one kind is no id of another, so that a task cannot be passed where a core is meant.

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Index, IndexMut};

macro_rules! ids {
    ($($(#[$doc:meta])* $id:ident)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $id(pub u32);

        impl $id {
            /// Creates the id of the thing at this place of its list.
            // Without a check in each decision: no system has 2³² tasks, cores or resources.
            #[inline]
            pub fn new(index: usize) -> $id {
                debug_assert!(u32::try_from(index).is_ok());
                $id(index as u32)
            }

            /// Returns the place of the thing in its list.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// Iterates over the ids of the first `count` things.
            #[inline]
            pub fn all(count: usize) -> impl DoubleEndedIterator<Item = $id> + ExactSizeIterator + Clone {
                (0..$id::new(count).0).map($id)
            }
        }

        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl<T> Index<$id> for [T] {
            type Output = T;

            #[inline]
            fn index(&self, id: $id) -> &T {
                &self[id.index()]
            }
        }

        impl<T> IndexMut<$id> for [T] {
            #[inline]
            fn index_mut(&mut self, id: $id) -> &mut T {
                &mut self[id.index()]
            }
        }

        impl<T> Index<$id> for Vec<T> {
            type Output = T;

            #[inline]
            fn index(&self, id: $id) -> &T {
                &self[id.index()]
            }
        }

        impl<T> IndexMut<$id> for Vec<T> {
            #[inline]
            fn index_mut(&mut self, id: $id) -> &mut T {
                &mut self[id.index()]
            }
        })*
    };
}

ids! {
    /// A task of a system: its place in [`crate::System::tasks`].
    TaskId

    /// A core of a system, from 0 to [`crate::System::cores`] less one.
    CoreId

    /// A resource of a system: its place in [`crate::System::resources`].
    ResourceId
}
