//! Settings that a file states as the name of a preset or as a table.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// Deserializes a `T` from a table, or from the name of a preset that `preset` knows. `names` are the names of all
/// presets.
pub fn named_or_table<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
    preset: fn(&str) -> Option<T>,
    names: &'static [&'static str],
) -> Result<T, D::Error> {
    from.deserialize_any(NamedOrTable { preset, names, kind: PhantomData })
}

struct NamedOrTable<T> {
    preset: fn(&str) -> Option<T>,
    names: &'static [&'static str],
    kind: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for NamedOrTable<T> {
    type Value = T;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "a table, or the name of a preset: {}", self.names.join(", "))
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<T, E> {
        (self.preset)(name).ok_or_else(|| E::unknown_variant(name, self.names))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}
