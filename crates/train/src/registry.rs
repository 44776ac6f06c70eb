//! Registry of methods: the type of a method's settings, by the name that a recipe file gives.
//!
//! The methods of this crate are always there. Others add theirs once, at the start of a program, with
//! [`register_method`]. A file is read into a tree of values first, because the type of a method's settings is only
//! known when its name has been read.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use serde::de::value::Error;
use serde::de::{DeserializeSeed, Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::method::{Method, StageMethod};
use crate::methods::{CloningSettings, DqnSettings, OfflineSettings, PpoSettings, RolloutSettings, StaySettings};
use crate::settings_tree::SettingsTree;

/// A method that recipes can name.
#[derive(Clone, Copy)]
struct Entry {
    name: &'static str,
    read: fn(SettingsTree) -> Result<StageMethod, Error>,
}

impl Entry {
    const fn of<M: Method>() -> Entry {
        Entry { name: M::NAME, read: |settings| M::deserialize(settings).map(StageMethod::from) }
    }
}

/// Methods of this crate.
const OWN: [Entry; 6] = [
    Entry::of::<CloningSettings>(),
    Entry::of::<RolloutSettings>(),
    Entry::of::<DqnSettings>(),
    Entry::of::<PpoSettings>(),
    Entry::of::<OfflineSettings>(),
    Entry::of::<StaySettings>(),
];

/// Methods that `temponet-paper` registers.
const OF_THE_PAPER: [&str; 5] = ["a2c", "sac", "priorities", "hierarchical", "rainbow"];

/// Methods that other crates have registered.
static OTHERS: RwLock<Vec<Entry>> = RwLock::new(Vec::new());

/// Adds a method that recipes can name from now on. A name that is taken keeps its method.
pub fn register_method<M: Method>() {
    let mut others = OTHERS.write().unwrap_or_else(PoisonError::into_inner);
    if OWN.iter().chain(others.iter()).all(|entry| entry.name != M::NAME) {
        others.push(Entry::of::<M>());
    }
}

/// Returns the names of all methods that recipes can name.
pub fn method_names() -> Vec<&'static str> {
    entries().iter().map(|entry| entry.name).collect()
}

fn entries() -> Vec<Entry> {
    let others = OTHERS.read().unwrap_or_else(PoisonError::into_inner);
    OWN.iter().chain(others.iter()).copied().collect()
}

fn find(name: &str) -> Option<Entry> {
    entries().into_iter().find(|entry| entry.name == name)
}

/// Says why there is no method of this name.
fn unknown(name: &str) -> String {
    if OF_THE_PAPER.contains(&name) {
        return format!(
            "the method `{name}` is one of temponet-paper's; `cargo build --release -p temponet-paper` builds that program"
        );
    }
    let names: Vec<String> = method_names().iter().map(|name| format!("`{name}`")).collect();
    format!("unknown method `{name}`, expected one of {}", names.join(", "))
}

impl Serialize for StageMethod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.name(), self.erased())?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for StageMethod {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StageMethod, D::Error> {
        deserializer.deserialize_map(OneMethod)
    }
}

/// Reader of a table with one method.
struct OneMethod;

impl<'de> Visitor<'de> for OneMethod {
    type Value = StageMethod;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a table with the name of one method")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StageMethod, A::Error> {
        let entry = map.next_key_seed(Name)?.ok_or_else(|| A::Error::custom("no method is named"))?;
        let method = map.next_value_seed(entry)?;
        match map.next_key::<String>()? {
            Some(other) => Err(A::Error::custom(format!("a stage has one method, not `{}` and `{other}`", entry.name))),
            None => Ok(method),
        }
    }
}

/// Reader of a method's name.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Entry;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Entry, D::Error> {
        let name = String::deserialize(deserializer)?;
        find(&name).ok_or_else(|| D::Error::custom(unknown(&name)))
    }
}

impl<'de> DeserializeSeed<'de> for Entry {
    type Value = StageMethod;

    /// Reads the settings. An error begins with the name of the setting, as those of [`Method::problem`] do: each is
    /// read alone to find it.
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<StageMethod, D::Error> {
        let settings = SettingsTree::deserialize(deserializer)?;
        let wrong_alone = |entry: &(String, SettingsTree)| {
            let wrong = (self.read)(SettingsTree::Table(vec![entry.clone()])).err()?;
            Some(format!("{}: {wrong}", entry.0))
        };
        (self.read)(settings.clone()).map_err(|error| {
            let setting = match &settings {
                SettingsTree::Table(table) => table.iter().find_map(wrong_alone),
                _ => None,
            };
            D::Error::custom(setting.unwrap_or_else(|| error.to_string()))
        })
    }
}
