//! Named example sets, embedded in the program: published task sets of the field and the paper's own.

use std::path::Path;

use crate::{Format, LoadError, Loaded, parse};

/// A named set and its file's text, whose comments name the source.
#[derive(Debug)]
pub struct Builtin {
    /// What users call it.
    pub name: &'static str,
    /// The TOML file.
    pub text: &'static str,
}

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$(Builtin { name: $name, text: include_str!(concat!("../sets/", $name, ".toml")) }),*]
    };
}

/// Every built-in set.
pub const ALL: &[Builtin] = builtin![
    "robot",
    "standard-112",
    "standard-125",
    "standard-145",
    "gap-avionics",
    "rosace",
    "democar",
    "waters2019",
    "autoware-reference",
    "autoware-chains",
    "mars-pathfinder",
];

/// The set that `temponet compare` runs when none is named: a robot with more work than time.
pub const DEFAULT: &str = "robot";

impl Builtin {
    /// The set called `name`.
    pub fn find(name: &str) -> Option<&'static Builtin> {
        ALL.iter().find(|set| set.name == name)
    }

    /// Reads it.
    pub fn load(&self) -> Result<Loaded, LoadError> {
        parse(self.text, Format::Toml, Path::new(&format!("{}.toml", self.name)))
    }

    /// The comments at the top of its file: where it comes from and what is not modelled.
    pub fn source(&self) -> String {
        let comments = self.text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
        comments.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_loads_and_only_democar_and_autoware_chains_have_hopeless_tasks() {
        for set in ALL {
            let loaded = set.load().unwrap_or_else(|error| panic!("{error}"));
            assert!(!loaded.set.description.is_empty() && !set.source().is_empty(), "{}", set.name);
            let warned = !loaded.warnings.is_empty();
            assert_eq!(
                warned,
                matches!(set.name, "democar" | "autoware-chains"),
                "{}: {:?}",
                set.name,
                loaded.warnings
            );
        }
    }

    #[test]
    fn loads_are_as_published() {
        let load = |name: &str| Builtin::find(name).unwrap().load().unwrap().set.utilization();
        for (name, published) in [("standard-112", 1.12), ("standard-125", 1.25), ("standard-145", 1.45)] {
            assert!((load(name) - published).abs() < 1e-9, "{name}");
        }
        assert!((load("gap-avionics") - 0.8451).abs() < 1e-3);
        assert!((load("mars-pathfinder") - 0.7215).abs() < 1e-4);
        assert!(load("democar") > 2.0);
    }
}
