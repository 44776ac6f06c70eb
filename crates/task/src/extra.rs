//! Attributes of tasks that only some schedulers read.
//!
//! Most attributes of a task mean something whatever decides: they say when jobs come, how long they take and what a
//! deadline is worth. The ones here do not: without a scheduler that reads them they are ignored. A scheduler's entry
//! in the catalog declares which it reads. Each is a whole number, so that one more takes a variant of [`Attribute`], a
//! row of keys in files and a scheduler, and nothing in between.

/// An attribute of tasks that only some schedulers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Attribute {
    /// Fixed priority: the job with the larger number runs first.
    Priority,
    /// Skip factor s, at least 2: one of any s consecutive jobs may be skipped (Koren and Shasha).
    Skip,
    /// Place in [`crate::System::servers`] of the server that serves the jobs of the task.
    Server,
}

impl Attribute {
    /// All attributes, in the order of their values in [`Extra`].
    pub const ALL: [Attribute; 3] = [Attribute::Priority, Attribute::Skip, Attribute::Server];

    /// Name in files.
    pub fn name(self) -> &'static str {
        match self {
            Attribute::Priority => "priority",
            Attribute::Skip => "skip",
            Attribute::Server => "server",
        }
    }
}

/// What a task states for the schedulers that read it: a number or nothing for each [`Attribute`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    values: [Option<i64>; Attribute::ALL.len()],
}

impl Extra {
    /// Returns the value of an attribute; `None` if the task does not state it.
    #[inline]
    pub fn get(&self, attribute: Attribute) -> Option<i64> {
        self.values[attribute as usize]
    }

    /// Sets the value of an attribute.
    pub fn set(&mut self, attribute: Attribute, value: Option<i64>) {
        self.values[attribute as usize] = value;
    }

    /// Returns whether the task states an attribute.
    pub fn has(&self, attribute: Attribute) -> bool {
        self.get(attribute).is_some()
    }

    /// Returns it with this value of an attribute.
    #[must_use]
    pub fn with(mut self, attribute: Attribute, value: i64) -> Extra {
        self.set(attribute, Some(value));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_apart() {
        assert!(Attribute::ALL.iter().enumerate().all(|(place, attribute)| *attribute as usize == place));
        let extra = Extra::default().with(Attribute::Skip, 2).with(Attribute::Priority, -3);
        assert_eq!(Attribute::ALL.map(|attribute| extra.get(attribute)), [Some(-3), Some(2), None]);
        assert!(extra.has(Attribute::Skip) && !extra.has(Attribute::Server));
    }
}
