//! Settings in TOML, such as recipes and scenarios: any type that serde reads, with the position of a mistake.
//!
//! It reads what `toml::from_str` reads, with its messages, except that a key that stands twice is named. That function
//! is compiled anew for each type, with all its cases of spans and dates; a recipe takes ten thousand lines of assembly
//! there. Here a type costs little more than serde's own code for it. Dates are refused.

use ::toml::Spanned;
use ::toml::de::{DeString, DeTable, DeValue};
use serde::de::value::StrDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, Deserializer, IntoDeserializer, Visitor};

use crate::toml::message;

/// A mistake in settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SettingsError {
    /// What is wrong, in one or more lines.
    pub message: String,
    /// Position in the text, in bytes, if it is known.
    pub at: Option<usize>,
}

impl SettingsError {
    /// The mistake in a text, with its line: `line 3: unknown field …`.
    pub fn in_text(&self, text: &str) -> String {
        let message = self.message.replace('\n', " ");
        match self.at {
            Some(at) => format!("line {}: {message}", line_of(text, at)),
            None => message,
        }
    }

    /// The same mistake with a position, unless it has one.
    #[inline(never)]
    fn at(mut self, position: usize) -> SettingsError {
        self.at.get_or_insert(position);
        self
    }
}

/// Returns the number of the line, from 1, that a position in bytes belongs to.
pub fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

impl de::Error for SettingsError {
    fn custom<T: std::fmt::Display>(message: T) -> SettingsError {
        SettingsError { message: message.to_string(), at: None }
    }
}

/// Reads settings from the text of a TOML file.
pub fn read_settings<T: DeserializeOwned>(text: &str) -> Result<T, SettingsError> {
    T::deserialize(Value(&parsed(text)?))
}

/// Parses the text into a table with positions.
fn parsed(text: &str) -> Result<Spanned<DeValue<'_>>, SettingsError> {
    let root = DeTable::parse(text)
        .map_err(|error| SettingsError { message: message(text, &error), at: error.span().map(|span| span.start) })?;
    Ok(Spanned::new(root.span(), DeValue::Table(root.into_inner())))
}

/// A value with its position.
#[derive(Clone, Copy)]
struct Value<'a, 'i>(&'a Spanned<DeValue<'i>>);

impl Value<'_, '_> {
    fn position(self) -> usize {
        self.0.span().start
    }

    fn wrong<T>(self, message: &str) -> Result<T, SettingsError> {
        Err(SettingsError { message: message.into(), at: Some(self.position()) })
    }
}

/// A number as it is written.
enum Number {
    Signed(i64),
    Unsigned(u64),
    Real(f64),
}

impl Number {
    /// Reads a number; none if it does not fit.
    fn of(value: &DeValue<'_>) -> Option<Number> {
        match value {
            DeValue::Integer(number) => {
                let (digits, radix) = (number.as_str(), number.radix());
                let signed = i64::from_str_radix(digits, radix).map(Number::Signed);
                signed.or_else(|_| u64::from_str_radix(digits, radix).map(Number::Unsigned)).ok()
            }
            DeValue::Float(number) => {
                let real: f64 = number.as_str().parse().ok()?;
                (real.is_finite() || !number.as_str().contains(|c: char| c.is_ascii_digit()))
                    .then_some(Number::Real(real))
            }
            _ => None,
        }
    }
}

impl<'de> Deserializer<'de> for Value<'_, '_> {
    type Error = SettingsError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        let read = match self.0.get_ref() {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Boolean(value) => visitor.visit_bool(*value),
            number @ (DeValue::Integer(_) | DeValue::Float(_)) => match Number::of(number) {
                Some(Number::Signed(number)) => visitor.visit_i64(number),
                Some(Number::Unsigned(number)) => visitor.visit_u64(number),
                Some(Number::Real(number)) => visitor.visit_f64(number),
                None => self.wrong("the number is too large"),
            },
            DeValue::Datetime(_) => self.wrong("a date is no setting"),
            DeValue::Array(items) => visitor.visit_seq(Items(items.iter())),
            DeValue::Table(table) => visitor.visit_map(Entries { rest: table.iter(), value: None }),
        };
        read.map_err(|error| error.at(self.position()))
    }

    /// What a file states is there.
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, SettingsError> {
        visitor.visit_newtype_struct(self)
    }

    /// A variant is its name, or a table of its name and its content.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SettingsError> {
        let read = match self.0.get_ref() {
            DeValue::String(text) => visitor.visit_enum(Name(text)),
            DeValue::Table(table) => match table.iter().next() {
                Some((name, content)) if table.len() == 1 => {
                    visitor.visit_enum(Variant { name, content: Value(content) })
                }
                None => self.wrong("wanted exactly 1 element, found 0 elements"),
                Some(_) => self.wrong("wanted exactly 1 element, more than 1 element"),
            },
            _ => self.wrong("wanted string or table"),
        };
        read.map_err(|error| error.at(self.position()))
    }

    serde::forward_to_deserialize_any! {
        bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 char str string seq bytes byte_buf map unit ignored_any unit_struct tuple_struct tuple
        identifier struct
    }
}

/// The rest of an array.
struct Items<'a, 'i>(std::slice::Iter<'a, Spanned<DeValue<'i>>>);

impl<'de> de::SeqAccess<'de> for Items<'_, '_> {
    type Error = SettingsError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, SettingsError> {
        self.0.next().map(|item| seed.deserialize(Value(item))).transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

/// The rest of a table.
struct Entries<'a, 'i> {
    rest: ::toml::map::Iter<'a, Spanned<DeString<'i>>, Spanned<DeValue<'i>>>,
    /// Value of the key that was read last.
    value: Option<Value<'a, 'i>>,
}

/// A key, or the name of a variant without content.
struct Name<'a>(&'a str);

impl<'a> Name<'a> {
    fn deserializer(self) -> StrDeserializer<'a, SettingsError> {
        self.0.into_deserializer()
    }
}

impl<'de> de::MapAccess<'de> for Entries<'_, '_> {
    type Error = SettingsError;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, SettingsError> {
        let Some((key, value)) = self.rest.next() else { return Ok(None) };
        self.value = Some(Value(value));
        let key = seed.deserialize(Name(key.get_ref()).deserializer()).map_err(|error| error.at(key.span().start));
        key.map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, SettingsError> {
        match self.value.take() {
            Some(value) => seed.deserialize(value).map_err(|error| error.at(value.position())),
            None => Err(de::Error::custom("a value was asked for before its key")),
        }
    }
}

impl<'de, 'a> de::EnumAccess<'de> for Name<'a> {
    type Error = SettingsError;
    type Variant = <StrDeserializer<'a, SettingsError> as de::EnumAccess<'de>>::Variant;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), SettingsError> {
        self.deserializer().variant_seed(seed)
    }
}

/// A variant with content.
struct Variant<'a, 'i> {
    name: &'a Spanned<DeString<'i>>,
    content: Value<'a, 'i>,
}

impl<'de, 'a, 'i> de::EnumAccess<'de> for Variant<'a, 'i> {
    type Error = SettingsError;
    type Variant = Value<'a, 'i>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Value<'a, 'i>), SettingsError> {
        let name = seed.deserialize(Name(self.name.get_ref()).deserializer());
        name.map(|name| (name, self.content)).map_err(|error| error.at(self.name.span().start))
    }
}

impl<'de> de::VariantAccess<'de> for Value<'_, '_> {
    type Error = SettingsError;

    fn unit_variant(self) -> Result<(), SettingsError> {
        match self.0.get_ref() {
            DeValue::Array(items) if items.is_empty() => Ok(()),
            DeValue::Table(table) if table.is_empty() => Ok(()),
            _ => self.wrong("this one has no settings"),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, SettingsError> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, SettingsError> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SettingsError> {
        self.deserialize_any(visitor)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        count: u32,
        #[serde(default)]
        share: Option<f64>,
        #[serde(default)]
        ranges: Vec<(f64, f64)>,
        #[serde(default)]
        method: Vec<Method>,
        #[serde(default)]
        others: BTreeMap<String, bool>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Method {
        Plain,
        Named(String),
        Pair(u8, i64),
        Wide {
            #[serde(default)]
            low: f32,
            high: Step,
        },
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Step(u64);

    #[test]
    fn it_reads_what_the_toml_crate_reads() {
        let text = "count = 0x10\nshare = 1\nranges = [[0, 1.5], [-1e3, inf]]\nmethod = [\"plain\", { named = \"x\" }, { pair = [3, -4] }, \
            { wide = { high = 18446744073709551615 } }]\n[others]\na = true\n\"b c\" = false\n";
        let ours: Settings = read_settings(text).unwrap();
        assert_eq!(ours, toml::from_str(text).unwrap());
        assert_eq!((ours.count, ours.method.len(), ours.others.len()), (16, 4, 2));
    }

    #[test]
    fn a_mistake_has_the_message_and_the_place_of_the_toml_crate() {
        let wrong = [
            "count = 1\nshar = 2\n",
            "share = 2\n",
            "count = 1\nshare = \"much\"\n",
            "count = -1\n",
            "count = 1\nranges = [[1, 2], [3]]\n",
            "count = 1\nmethod = [\"plain\", \"plane\"]\n",
            "count = 1\n[[method]]\n[[method]]\nplain = 1\nnamed = \"a\"\n",
            "count = 1\nmethod = [{}]\n",
            "count = 1\nmethod = [1]\n",
            "count = 1\nmethod = [{ wide = { low = 1 } }]\n",
            "count = 1\nmethod = [{ named = 1 }]\n",
            "count = 1\nothers = { a = 1 }\n",
            "count = \n",
        ];
        for text in wrong {
            let ours = read_settings::<Settings>(text).unwrap_err();
            let theirs = toml::from_str::<Settings>(text).unwrap_err();
            assert_eq!(ours.message, theirs.message(), "{text}");
            assert_eq!(ours.at, theirs.span().map(|span| span.start), "{text}");
        }
        let error = read_settings::<Settings>("count = 1\nshar = 2\n").unwrap_err();
        let twice = "count = 1\ncount = 2\n";
        let named = read_settings::<Settings>(twice).unwrap_err().in_text(twice);
        assert_eq!(named, "line 2: key \"count\" stands twice", "the message of the crate does not name it");
        assert!(error.in_text("count = 1\nshar = 2\n").starts_with("line 2: unknown field `shar`"), "{error}");
    }

    #[test]
    fn what_cannot_be_a_setting_is_refused() {
        for text in ["count = 1979-05-27\n", "count = 99999999999999999999\n", "count = 1\nshare = 1e999\n"] {
            assert!(read_settings::<Settings>(text).is_err(), "{text}");
        }
    }
}
