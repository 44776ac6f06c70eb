//! Named example sets that are embedded in the program: published task sets of the field, and those of the paper.

use std::path::Path;

use crate::{Format, LoadError, Loaded, parse};

/// A built-in task set. The comments in its text name the source.
#[derive(Debug)]
pub struct Builtin {
    /// Name on the command line.
    pub name: &'static str,
    /// Text of the TOML file.
    pub text: &'static str,
}

macro_rules! builtin {
    ($($name:literal),* $(,)?) => {
        &[$(Builtin { name: $name, text: include_str!(concat!("../sets/", $name, ".toml")) }),*]
    };
}

/// All built-in sets.
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
    "autoware-graph",
    "autoware-dags",
    "mars-pathfinder",
    "odroid-xu4",
    "warehouse-robot",
    "gpu-vision",
];

/// Name of the set that `temponet compare` runs by default: an overloaded robot.
pub const DEFAULT: &str = "robot";

impl Builtin {
    /// Returns the built-in set with this name.
    pub fn find(name: &str) -> Option<&'static Builtin> {
        ALL.iter().find(|set| set.name == name)
    }

    /// Parses the text of the set.
    pub fn load(&self) -> Result<Loaded, LoadError> {
        parse(self.text, Format::Toml, Path::new(&format!("{}.toml", self.name)))
    }

    /// Returns the comments at the top of the file: where the set comes from and what is not modeled.
    pub fn source(&self) -> String {
        let comments = self.text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
        comments.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_loads_and_only_democar_and_two_of_autoware_have_hopeless_tasks() {
        for set in ALL {
            let loaded = set.load().unwrap_or_else(|error| panic!("{error}"));
            assert!(!loaded.set.description.is_empty() && !set.source().is_empty(), "{}", set.name);
            assert_eq!(loaded.set.system.validate(), Ok(()), "{}", set.name);
            let warned = !loaded.warnings.is_empty();
            assert_eq!(
                warned,
                matches!(set.name, "democar" | "autoware-chains" | "autoware-dags"),
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
        let xu4 = Builtin::find("odroid-xu4").unwrap().load().unwrap().set;
        assert!((1.0..1.25).contains(&(xu4.utilization() / xu4.capacity())));
    }
}
