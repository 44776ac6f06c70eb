//! Types as they are decoded: paths are resolved to slots, which the decoder fills while it goes over the bits.

use std::collections::HashMap;
use std::rc::Rc;

use super::types::*;

/// Slot of the number of the event's class: whatever is called `id` in the header, the last one of several.
pub(super) const EVENT_ID: usize = 0;

/// Where a field is found after it has been decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Number(usize),
    Text(usize),
}

/// A type with slots.
#[derive(Debug)]
pub(super) enum Node {
    Number {
        size: u32,
        align: u32,
        is_signed: bool,
        order: ByteOrder,
        slot: usize,
        is_clock: bool,
    },
    Skipped {
        size: u32,
        align: u32,
    },
    Text {
        slot: usize,
    },
    Structure {
        align: u32,
        fields: Vec<Node>,
    },
    Variant {
        tag: usize,
        ranges: Vec<(i64, i64, usize)>,
        options: Vec<Node>,
    },
    /// Elements in a row. With `text`, they are the bytes of a text.
    Array {
        of: Box<Node>,
        length: Length,
        text: Option<usize>,
    },
}

/// Length of an array.
#[derive(Clone, Copy, Debug)]
pub(super) enum Length {
    Fixed(u64),
    Slot(usize),
}

/// Builds layouts, one scope after the other.
#[derive(Clone, Default)]
pub(super) struct Layouts {
    numbers: usize,
    texts: usize,
    nodes: usize,
    /// Fields by their whole path, such as `event.fields.prev_comm`.
    found: HashMap<String, Found>,
    /// Labels of enumerations, by their slots.
    labels: HashMap<usize, Rc<Vec<Label>>>,
}

/// Most nodes of the scopes of one class of events.
const MOST_NODES: usize = 1 << 16;

impl Layouts {
    pub fn new() -> Layouts {
        Layouts { numbers: EVENT_ID + 1, ..Layouts::default() }
    }

    /// Number of slots for numbers and for texts.
    pub fn sizes(&self) -> (usize, usize) {
        (self.numbers, self.texts)
    }

    /// Returns the place of a field.
    pub fn find(&self, scope: &str, name: &str) -> Option<Found> {
        self.found.get(&format!("{scope}.{name}")).copied()
    }

    /// Adds a scope such as `stream.event.header`.
    pub fn add(&mut self, scope: &str, of: &Type) -> Result<Node, String> {
        self.node(of, &mut vec![scope.into()])
    }

    fn node(&mut self, of: &Type, path: &mut Vec<String>) -> Result<Node, String> {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            return Err(format!("{} has more than {MOST_NODES} fields", path[0]));
        }
        Ok(match of {
            Type::Integer(integer) => self.number(integer, path, None),
            Type::Enumeration { of, labels } => self.number(of, path, Some(labels)),
            Type::Float { size, align } => Node::Skipped { size: *size, align: *align },
            Type::Text => Node::Text { slot: self.text(path) },
            Type::Structure(structure) => {
                let mut fields = Vec::new();
                for (name, field) in &structure.fields {
                    path.push(name.clone());
                    fields.push(self.node(field, path)?);
                    path.pop();
                }
                Node::Structure { align: of.align(), fields }
            }
            Type::Variant(variant) => {
                let (tag, labels) = self.tag(&variant.tag, path)?;
                let mut options = Vec::new();
                for (name, option) in &variant.options {
                    path.push(name.clone());
                    options.push(self.node(option, path)?);
                    path.pop();
                }
                let place = |label: &Label| variant.options.iter().position(|(name, _)| *name == label.name);
                let ranges = labels.iter().filter_map(|label| Some((label.from, label.to, place(label)?))).collect();
                Node::Variant { tag, ranges, options }
            }
            Type::Array { of, length } => self.array(of, Length::Fixed(*length), path)?,
            Type::Sequence { of, length } => {
                let slot = self.resolve(length, path)?;
                self.array(of, Length::Slot(slot), path)?
            }
        })
    }

    fn number(&mut self, integer: &Integer, path: &[String], labels: Option<&Rc<Vec<Label>>>) -> Node {
        let scope = path[0].as_str();
        let last = path.last().map_or("", String::as_str);
        let is_header = scope == "stream.event.header";
        let slot = match is_header && last == "id" {
            true => EVENT_ID,
            false => {
                self.numbers += 1;
                self.numbers - 1
            }
        };
        self.found.insert(path.join("."), Found::Number(slot));
        if let Some(labels) = labels {
            self.labels.insert(slot, labels.clone());
        }
        let Integer { size, align, is_signed, order, .. } = *integer;
        let is_clock = is_header && (integer.clock.is_some() || last == "timestamp");
        Node::Number { size, align, is_signed, order, slot, is_clock }
    }

    fn text(&mut self, path: &[String]) -> usize {
        self.found.insert(path.join("."), Found::Text(self.texts));
        self.texts += 1;
        self.texts - 1
    }

    fn array(&mut self, of: &Type, length: Length, path: &mut Vec<String>) -> Result<Node, String> {
        let is_text = matches!(of, Type::Integer(Integer { size: 8, is_text: true, .. }));
        path.push("[]".into());
        let element = self.node(of, path)?;
        path.pop();
        let text = is_text.then(|| self.text(path));
        Ok(Node::Array { of: Box::new(element), length, text })
    }

    fn tag(&self, tag: &[String], path: &[String]) -> Result<(usize, Rc<Vec<Label>>), String> {
        let slot = self.resolve(tag, path)?;
        match self.labels.get(&slot) {
            Some(labels) => Ok((slot, labels.clone())),
            None => Err(format!("the tag {:?} of a variant is no enumeration", tag.join("."))),
        }
    }

    /// Finds the number that a path leads to: a whole path, or one from the field's own structure or one around it.
    fn resolve(&self, wanted: &[String], path: &[String]) -> Result<usize, String> {
        let tail = wanted.join(".");
        let around = (1..=path.len()).rev().map(|depth| format!("{}.{tail}", path[..depth].join(".")));
        let whole = [tail.clone(), format!("stream.{tail}"), format!("trace.{tail}")];
        for candidate in around.chain(whole) {
            if let Some(Found::Number(slot)) = self.found.get(&candidate) {
                return Ok(*slot);
            }
        }
        Err(format!("{tail:?} is the length or the tag of {:?}, and there is no such number before it", path.join(".")))
    }
}
