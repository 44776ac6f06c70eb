//! Settings of a method before their type is known: a tree of plain values, read from any format.
//!
//! The name of a method stands before its settings in a file, but the type that the name stands for is found at run
//! time. The tree keeps what was written, no value and infinite numbers included, and the type is read from the tree.

use std::fmt;

use serde::de::value::{Error, MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{Deserialize, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// A value of a settings file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum SettingsTree {
    /// No value.
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Whole(i64),
    /// A real number.
    Real(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<SettingsTree>),
    /// A table, in the order of its keys in the file.
    Table(Vec<(String, SettingsTree)>),
}

impl<'de> Deserialize<'de> for SettingsTree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SettingsTree, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = SettingsTree;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a setting")
    }

    fn visit_unit<E>(self) -> Result<SettingsTree, E> {
        Ok(SettingsTree::None)
    }

    fn visit_bool<E>(self, value: bool) -> Result<SettingsTree, E> {
        Ok(SettingsTree::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<SettingsTree, E> {
        Ok(SettingsTree::Whole(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<SettingsTree, E> {
        let whole = i64::try_from(value).map_err(|_| E::custom(format!("{value} is too large")))?;
        Ok(SettingsTree::Whole(whole))
    }

    fn visit_f64<E>(self, value: f64) -> Result<SettingsTree, E> {
        Ok(SettingsTree::Real(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<SettingsTree, E> {
        Ok(SettingsTree::Text(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SettingsTree, A::Error> {
        let mut all = Vec::new();
        while let Some(value) = list.next_element()? {
            all.push(value);
        }
        Ok(SettingsTree::List(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SettingsTree, A::Error> {
        let mut all = Vec::new();
        while let Some(entry) = map.next_entry()? {
            all.push(entry);
        }
        Ok(SettingsTree::Table(all))
    }
}

impl<'de> Deserializer<'de> for SettingsTree {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            SettingsTree::None => visitor.visit_unit(),
            SettingsTree::Bool(value) => visitor.visit_bool(value),
            SettingsTree::Whole(value) => visitor.visit_i64(value),
            SettingsTree::Real(value) => visitor.visit_f64(value),
            SettingsTree::Text(value) => visitor.visit_string(value),
            SettingsTree::List(list) => {
                let mut list = SeqDeserializer::new(list.into_iter());
                let value = visitor.visit_seq(&mut list)?;
                list.end().map(|()| value)
            }
            SettingsTree::Table(table) => {
                let mut table = MapDeserializer::new(table.into_iter());
                let value = visitor.visit_map(&mut table)?;
                table.end().map(|()| value)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self == SettingsTree::None { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self {
            SettingsTree::Text(value) => value.into_deserializer().deserialize_enum(name, variants, visitor),
            SettingsTree::Table(table) => {
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(table.into_iter())))
            }
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

impl IntoDeserializer<'_, Error> for SettingsTree {
    type Deserializer = SettingsTree;

    fn into_deserializer(self) -> SettingsTree {
        self
    }
}
