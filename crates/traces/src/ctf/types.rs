//! Types of CTF as the metadata declares them.

use std::rc::Rc;

/// Order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

/// A whole number.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Integer {
    /// Size in bits, 1 to 64.
    pub size: u32,
    /// Alignment in bits, a power of two.
    pub align: u32,
    pub is_signed: bool,
    pub order: ByteOrder,
    /// Whether it is a character of a text.
    pub is_text: bool,
    /// Name of the clock that it tells the time of.
    pub clock: Option<String>,
}

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Type {
    Integer(Integer),
    /// Size and alignment in bits. What it holds is not needed.
    Float {
        size: u32,
        align: u32,
    },
    /// A text that ends with a zero byte.
    Text,
    Enumeration {
        of: Integer,
        labels: Rc<Vec<Label>>,
    },
    Structure(Rc<Structure>),
    Variant(Rc<Variant>),
    Array {
        of: Rc<Type>,
        length: u64,
    },
    Sequence {
        of: Rc<Type>,
        length: Path,
    },
}

/// A label of an enumeration, with the range of its values.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Label {
    pub name: String,
    pub from: i64,
    pub to: i64,
}

/// Fields in a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Structure {
    pub fields: Vec<(String, Type)>,
    /// Alignment in bits, those of the fields included.
    pub align: u32,
}

/// One of several types, by the label of an enumeration.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Variant {
    pub tag: Path,
    pub options: Vec<(String, Type)>,
}

/// Names that lead to a field.
pub(super) type Path = Vec<String>;

impl Type {
    /// Alignment in bits.
    pub fn align(&self) -> u32 {
        match self {
            Type::Integer(integer) | Type::Enumeration { of: integer, .. } => integer.align,
            Type::Float { align, .. } => *align,
            Type::Text => 8,
            Type::Structure(structure) => structure.align.max(1),
            // A variant has the alignment of what it turns out to be.
            Type::Variant(_) => 1,
            Type::Array { of, .. } => of.align(),
            Type::Sequence { of, .. } => of.align(),
        }
    }
}

/// A clock.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Clock {
    pub name: String,
    pub uuid: Option<String>,
    /// Ticks in a second.
    pub frequency: u64,
}

/// A class of streams.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamClass {
    pub id: u64,
    pub packet_context: Option<Type>,
    pub event_header: Option<Type>,
    pub event_context: Option<Type>,
}

/// A class of events.
#[derive(Clone, Debug, Default)]
pub(super) struct EventClass {
    pub id: u64,
    pub stream: u64,
    pub name: String,
    pub context: Option<Type>,
    pub fields: Option<Type>,
}

/// What the metadata says.
#[derive(Clone, Debug)]
pub(super) struct Metadata {
    pub order: ByteOrder,
    pub packet_header: Option<Type>,
    pub clocks: Vec<Clock>,
    pub streams: Vec<StreamClass>,
    pub events: Vec<EventClass>,
    /// Name of the tracer.
    pub tracer: String,
}
