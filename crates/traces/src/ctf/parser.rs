//! Parser of TSDL: tokens to the types and classes of a trace.

use std::collections::HashMap;
use std::rc::Rc;

use super::lexer::{Placed, Token, tokens};
use super::types::*;

/// Deepest nesting of types. Deeper metadata would only exhaust the stack.
const DEEPEST: usize = 32;
/// Most nodes of all types together, so that names of names do not multiply without an end.
const MOST_FIELDS: usize = 1 << 20;

/// An error with its offset in the text.
pub(super) type Wrong = (usize, String);

/// Reads the text of a metadata file.
pub(super) fn metadata(text: &str) -> Result<Metadata, Wrong> {
    let tokens = tokens(text)?;
    let order = native_order(&tokens).ok_or((0, "has no trace { byte_order = … }".to_string()))?;
    let metadata = Metadata {
        order,
        packet_header: None,
        clocks: Vec::new(),
        streams: Vec::new(),
        events: Vec::new(),
        tracer: String::new(),
    };
    let mut parser =
        Parser { tokens, at: 0, end: text.len(), named: HashMap::new(), levels: 0, metadata, depth: 0, fields: 0 };
    while parser.at < parser.tokens.len() {
        parser.top()?;
    }
    Ok(parser.metadata)
}

/// The byte order of the trace, which types before the block `trace` have as well.
fn native_order(tokens: &[Placed]) -> Option<ByteOrder> {
    let is = |at: usize, word: &str| matches!(&tokens[at].0, Token::Word(text) if text == word);
    let trace =
        (0..tokens.len().checked_sub(1)?).find(|at| is(*at, "trace") && tokens[at + 1].0 == Token::Sign("{"))?;
    let key = (trace..tokens.len().checked_sub(2)?).find(|at| is(*at, "byte_order"))?;
    match &tokens[key + 2].0 {
        Token::Word(text) => byte_order(text),
        _ => None,
    }
}

fn byte_order(word: &str) -> Option<ByteOrder> {
    match word {
        "le" => Some(ByteOrder::Little),
        "be" | "network" => Some(ByteOrder::Big),
        _ => None,
    }
}

/// Value of an attribute.
enum Attribute {
    Number(i64),
    /// A word, words with dots between them, or a text.
    Text(String),
    Type(Type),
}

struct Parser {
    tokens: Vec<Placed>,
    at: usize,
    /// Length of the text.
    end: usize,
    /// Types with names, and the levels of names within them; those of `struct`, `variant` and `enum` have that word
    /// before.
    named: HashMap<String, (Type, usize)>,
    /// Most levels of the names that the present declaration has used.
    levels: usize,
    metadata: Metadata,
    depth: usize,
    fields: usize,
}

impl Parser {
    fn wrong<T>(&self, message: impl Into<String>) -> Result<T, Wrong> {
        Err((self.offset(), message.into()))
    }

    fn offset(&self) -> usize {
        self.tokens.get(self.at).map_or(self.end, |token| token.1)
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|token| &token.0)
    }

    fn is_sign(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(found)) if *found == sign)
    }

    fn take_sign(&mut self, sign: &str) -> bool {
        let is_it = self.is_sign(sign);
        self.at += usize::from(is_it);
        is_it
    }

    fn expect(&mut self, sign: &str) -> Result<(), Wrong> {
        match self.take_sign(sign) {
            true => Ok(()),
            false => self.wrong(format!("{:?} is missing before {}", sign, self.found())),
        }
    }

    fn found(&self) -> String {
        match self.peek() {
            Some(Token::Word(word)) => format!("{word:?}"),
            Some(Token::Number(number)) => number.to_string(),
            Some(Token::Text(text)) => format!("{text:?}"),
            Some(Token::Sign(sign)) => format!("{sign:?}"),
            None => "the end".into(),
        }
    }

    fn word(&mut self) -> Result<String, Wrong> {
        match self.peek() {
            Some(Token::Word(word)) => {
                let word = word.clone();
                self.at += 1;
                Ok(word)
            }
            _ => self.wrong(format!("a name is missing before {}", self.found())),
        }
    }

    fn take_word(&mut self, word: &str) -> bool {
        let is_it = matches!(self.peek(), Some(Token::Word(found)) if found == word);
        self.at += usize::from(is_it);
        is_it
    }

    fn number(&mut self) -> Result<i64, Wrong> {
        let is_negative = self.take_sign("-");
        self.take_sign("+");
        match self.peek() {
            Some(Token::Number(number)) => {
                let number = *number;
                self.at += 1;
                Ok(if is_negative { number.wrapping_neg() } else { number })
            }
            _ => self.wrong(format!("a number is missing before {}", self.found())),
        }
    }

    /// Reads one declaration outside of all blocks.
    fn top(&mut self) -> Result<(), Wrong> {
        self.levels = 0;
        if self.take_sign(";") || self.declaration()? {
            return Ok(());
        }
        let start = self.offset();
        let block = self.word()?;
        self.expect("{")?;
        match block.as_str() {
            "trace" => self.trace(),
            "clock" => self.clock(),
            "stream" => self.stream(),
            "event" => self.event(),
            "env" => self.environment(),
            "callsite" => self.attributes().map(|_| ()),
            _ => Err((start, format!("{block:?} is no block of CTF 1.8"))),
        }?;
        self.expect("}")?;
        self.take_sign(";");
        Ok(())
    }

    /// Reads a declaration of a type, if there is one.
    fn declaration(&mut self) -> Result<bool, Wrong> {
        if self.take_word("typealias") {
            let of = self.specifier(false)?.0;
            self.expect(":=")?;
            let name = self.alias()?;
            self.name(name, of)?;
        } else if self.take_word("typedef") {
            let (of, name) = self.specifier(true)?;
            let (name, of) = self.declarator(of, name)?;
            self.name(name, of)?;
        } else if matches!(self.peek(), Some(Token::Word(word)) if matches!(word.as_str(), "struct" | "variant" | "enum"))
        {
            self.specifier(false)?;
        } else {
            return Ok(false);
        }
        self.expect(";")?;
        Ok(true)
    }

    /// Reads a name of one or several words, such as `unsigned long`.
    fn alias(&mut self) -> Result<String, Wrong> {
        let mut name = self.word()?;
        while let Some(Token::Word(word)) = self.peek() {
            name = format!("{name} {word}");
            self.at += 1;
        }
        Ok(name)
    }

    /// Reads the entries of a block until its closing brace.
    fn attributes(&mut self) -> Result<Vec<(String, Attribute, usize)>, Wrong> {
        let mut entries = Vec::new();
        while !self.is_sign("}") {
            if self.peek().is_none() {
                return self.wrong("a block does not end");
            }
            self.levels = 0;
            if self.take_sign(";") || self.declaration()? {
                continue;
            }
            let start = self.offset();
            let mut key = match self.peek() {
                Some(Token::Text(text)) => {
                    let text = text.clone();
                    self.at += 1;
                    text
                }
                _ => self.word()?,
            };
            while self.take_sign(".") {
                key = format!("{key}.{}", self.word()?);
            }
            if self.take_sign(":=") {
                let of = self.specifier(false)?.0;
                entries.push((key, Attribute::Type(of), start));
            } else {
                self.expect("=")?;
                let value = match self.peek() {
                    Some(Token::Text(text)) => {
                        let text = text.clone();
                        self.at += 1;
                        Attribute::Text(text)
                    }
                    Some(Token::Word(_)) => {
                        let mut text = self.word()?;
                        while self.take_sign(".") {
                            text = format!("{text}.{}", self.word()?);
                        }
                        Attribute::Text(text)
                    }
                    _ => Attribute::Number(self.number()?),
                };
                entries.push((key, value, start));
            }
            self.expect(";")?;
        }
        Ok(entries)
    }

    fn trace(&mut self) -> Result<(), Wrong> {
        for (key, value, start) in self.attributes()? {
            match (key.as_str(), value) {
                ("packet.header", Attribute::Type(of)) => self.metadata.packet_header = Some(of),
                ("major", Attribute::Number(major)) if major != 1 => {
                    return Err((
                        start,
                        format!("CTF {major} is not read here, only CTF 1: use babeltrace2 (temponet import -)"),
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn environment(&mut self) -> Result<(), Wrong> {
        for (key, value, _) in self.attributes()? {
            if let ("tracer_name", Attribute::Text(text)) = (key.as_str(), value) {
                self.metadata.tracer = text;
            }
        }
        Ok(())
    }

    fn clock(&mut self) -> Result<(), Wrong> {
        let mut clock = Clock { frequency: 1_000_000_000, ..Clock::default() };
        for (key, value, start) in self.attributes()? {
            match (key.as_str(), value) {
                ("name", Attribute::Text(text)) => clock.name = text,
                ("uuid", Attribute::Text(text)) => clock.uuid = Some(text),
                ("freq", Attribute::Number(number)) => {
                    clock.frequency = u64::try_from(number)
                        .ok()
                        .filter(|number| *number > 0)
                        .ok_or_else(|| (start, format!("a clock with {number} ticks in a second")))?;
                }
                _ => {}
            }
        }
        self.metadata.clocks.push(clock);
        Ok(())
    }

    fn stream(&mut self) -> Result<(), Wrong> {
        let mut stream = StreamClass::default();
        for (key, value, _) in self.attributes()? {
            match (key.as_str(), value) {
                ("id", Attribute::Number(number)) => stream.id = number as u64,
                ("packet.context", Attribute::Type(of)) => stream.packet_context = Some(of),
                ("event.header", Attribute::Type(of)) => stream.event_header = Some(of),
                ("event.context", Attribute::Type(of)) => stream.event_context = Some(of),
                _ => {}
            }
        }
        self.metadata.streams.push(stream);
        Ok(())
    }

    fn event(&mut self) -> Result<(), Wrong> {
        let mut event = EventClass::default();
        for (key, value, _) in self.attributes()? {
            match (key.as_str(), value) {
                ("id", Attribute::Number(number)) => event.id = number as u64,
                ("stream_id", Attribute::Number(number)) => event.stream = number as u64,
                ("name", Attribute::Text(text)) => event.name = text,
                ("context", Attribute::Type(of)) => event.context = Some(of),
                ("fields", Attribute::Type(of)) => event.fields = Some(of),
                _ => {}
            }
        }
        self.metadata.events.push(event);
        Ok(())
    }

    /// Reads a type. With `before_name`, the last of the words of an alias is a name, which is returned as well.
    fn specifier(&mut self, before_name: bool) -> Result<(Type, Option<String>), Wrong> {
        self.depth += 1;
        self.fields += 1;
        if self.depth > DEEPEST || self.fields > MOST_FIELDS {
            return self.wrong(format!("types are nested in more than {DEEPEST} levels, or too many"));
        }
        let start = self.offset();
        let result = match self.word()?.as_str() {
            "integer" => self.integer().map(|integer| (Type::Integer(integer), None)),
            "floating_point" => self.float().map(|float| (float, None)),
            "string" => {
                if self.take_sign("{") {
                    self.attributes()?;
                    self.expect("}")?;
                }
                Ok((Type::Text, None))
            }
            "struct" => self.structure().map(|of| (of, None)),
            "variant" => self.variant().map(|of| (of, None)),
            "enum" => self.enumeration().map(|of| (of, None)),
            first => {
                let mut words = vec![first.to_string()];
                while let Some(Token::Word(word)) = self.peek() {
                    words.push(word.clone());
                    self.at += 1;
                }
                let name = if before_name { words.pop() } else { None };
                let alias = words.join(" ");
                match self.named.get(&alias) {
                    Some((of, levels)) => {
                        self.levels = self.levels.max(*levels);
                        Ok((of.clone(), name))
                    }
                    None => Err((start, format!("there is no type {alias:?}"))),
                }
            }
        };
        self.depth -= 1;
        result
    }

    fn integer(&mut self) -> Result<Integer, Wrong> {
        let start = self.offset();
        self.expect("{")?;
        let (mut size, mut align, mut is_signed, mut is_text, mut clock) = (0, None, false, false, None);
        let mut order = self.metadata.order;
        for (key, value, start) in self.attributes()? {
            match (key.as_str(), value) {
                ("size", Attribute::Number(number)) => size = number,
                ("align", Attribute::Number(number)) => align = Some(number),
                ("signed", Attribute::Number(number)) => is_signed = number != 0,
                ("signed", Attribute::Text(text)) => is_signed = matches!(text.as_str(), "true" | "TRUE"),
                ("encoding", Attribute::Text(text)) => is_text = text != "none",
                ("byte_order", Attribute::Text(text)) if text == "native" => {}
                ("byte_order", Attribute::Text(text)) => {
                    order =
                        byte_order(&text).ok_or_else(|| (start, format!("byte_order = {text} is none of le, be")))?;
                }
                ("map", Attribute::Text(text)) => {
                    clock = text.strip_prefix("clock.").and_then(|rest| rest.strip_suffix(".value")).map(String::from);
                }
                _ => {}
            }
        }
        self.expect("}")?;
        let size = u32::try_from(size).ok().filter(|size| (1..=64).contains(size));
        let size = size.ok_or_else(|| (start, "an integer needs a size from 1 to 64".to_string()))?;
        let align = align.unwrap_or(if size % 8 == 0 { 8 } else { 1 });
        Ok(Integer { size, align: alignment(align, start)?, is_signed, order, is_text, clock })
    }

    fn float(&mut self) -> Result<Type, Wrong> {
        let start = self.offset();
        self.expect("{")?;
        let (mut size, mut align) = (0, 8);
        for (key, value, _) in self.attributes()? {
            match (key.as_str(), value) {
                ("exp_dig" | "mant_dig", Attribute::Number(number)) => size += number.clamp(0, 1 << 10),
                ("align", Attribute::Number(number)) => align = number,
                _ => {}
            }
        }
        self.expect("}")?;
        let size = u32::try_from(size).ok().filter(|size| (1..=128).contains(size));
        let size = size.ok_or_else(|| (start, "a floating_point needs exp_dig and mant_dig".to_string()))?;
        Ok(Type::Float { size, align: alignment(align, start)? })
    }

    /// Reads the name of a structure, variant or enumeration, if there is one.
    fn own_name(&mut self, kind: &str) -> Option<String> {
        match self.peek() {
            Some(Token::Word(word)) if word != "align" => {
                let name = format!("{kind} {word}");
                self.at += 1;
                Some(name)
            }
            _ => None,
        }
    }

    fn structure(&mut self) -> Result<Type, Wrong> {
        let name = self.own_name("struct");
        if !self.is_sign("{") {
            return self.known(name);
        }
        let fields = self.members()?;
        let mut align = 1;
        if self.take_word("align") {
            self.expect("(")?;
            let start = self.offset();
            align = alignment(self.number()?, start)?;
            self.expect(")")?;
        }
        let align = fields.iter().map(|(_, of)| of.align()).fold(align, u32::max);
        let of = Type::Structure(Rc::new(Structure { fields, align }));
        if let Some(name) = name {
            self.name(name, of.clone())?;
        }
        Ok(of)
    }

    /// Gives a type a name.
    fn name(&mut self, name: String, of: Type) -> Result<(), Wrong> {
        let levels = self.levels + 1;
        if levels > DEEPEST {
            return self.wrong(format!("types are named after each other in more than {DEEPEST} levels"));
        }
        self.named.insert(name, (of, levels));
        Ok(())
    }

    fn known(&mut self, name: Option<String>) -> Result<Type, Wrong> {
        match name {
            Some(name) => match self.named.get(&name) {
                Some((of, levels)) => {
                    self.levels = self.levels.max(*levels);
                    Ok(of.clone())
                }
                None => self.wrong(format!("there is no {name:?}")),
            },
            None => self.wrong("a type without a name and without a body"),
        }
    }

    /// Reads `{ type name; … }`.
    fn members(&mut self) -> Result<Vec<(String, Type)>, Wrong> {
        self.expect("{")?;
        let mut fields = Vec::new();
        while !self.take_sign("}") {
            if self.peek().is_none() {
                return self.wrong("a type does not end");
            }
            if matches!(self.peek(), Some(Token::Word(word)) if word == "typealias" || word == "typedef") {
                self.declaration()?;
                continue;
            }
            let (of, name) = self.specifier(true)?;
            if name.is_none() && self.take_sign(";") {
                // A type that is only declared.
                continue;
            }
            let (name, of) = self.declarator(of, name)?;
            fields.push((plain(&name), of));
            self.expect(";")?;
        }
        Ok(fields)
    }

    /// Reads the name of a field and its lengths.
    fn declarator(&mut self, of: Type, name: Option<String>) -> Result<(String, Type), Wrong> {
        let name = match name {
            Some(name) => name,
            None => self.word()?,
        };
        let mut lengths = Vec::new();
        while self.take_sign("[") {
            lengths.push(match self.peek() {
                Some(Token::Number(_)) => {
                    let start = self.offset();
                    let number = self.number()?;
                    Ok(u64::try_from(number).map_err(|_| (start, format!("an array of length {number}")))?)
                }
                _ => Err(self.path()?),
            });
            self.expect("]")?;
        }
        let of = lengths.into_iter().rev().fold(of, |of, length| match length {
            Ok(length) => Type::Array { of: Rc::new(of), length },
            Err(length) => Type::Sequence { of: Rc::new(of), length },
        });
        Ok((name, of))
    }

    fn path(&mut self) -> Result<Path, Wrong> {
        let mut path = vec![plain(&self.word()?)];
        while self.take_sign(".") || self.take_sign("->") {
            path.push(plain(&self.word()?));
        }
        Ok(path)
    }

    fn variant(&mut self) -> Result<Type, Wrong> {
        let name = self.own_name("variant");
        let mut tag = Vec::new();
        if self.take_sign("<") {
            tag = self.path()?;
            self.expect(">")?;
        }
        if !self.is_sign("{") {
            return match self.known(name)? {
                Type::Variant(known) if !tag.is_empty() => {
                    Ok(Type::Variant(Rc::new(Variant { tag, options: known.options.clone() })))
                }
                known => Ok(known),
            };
        }
        let options = self.members()?;
        let of = Type::Variant(Rc::new(Variant { tag, options }));
        if let Some(name) = name {
            self.name(name, of.clone())?;
        }
        Ok(of)
    }

    fn enumeration(&mut self) -> Result<Type, Wrong> {
        let name = self.own_name("enum");
        let mut of = None;
        if self.take_sign(":") {
            let start = self.offset();
            match self.specifier(false)?.0 {
                Type::Integer(integer) => of = Some(integer),
                _ => return Err((start, "an enumeration of something else than integers".into())),
            }
        }
        if !self.take_sign("{") {
            return self.known(name);
        }
        let of = match (of, self.named.get("int")) {
            (Some(of), _) => of,
            (None, Some((Type::Integer(int), _))) => int.clone(),
            _ => return self.wrong("an enumeration without a type of integers"),
        };
        let (mut labels, mut next) = (Vec::new(), 0i64);
        while !self.take_sign("}") {
            let label = match self.peek() {
                Some(Token::Text(text)) => {
                    let text = text.clone();
                    self.at += 1;
                    text
                }
                _ => self.word()?,
            };
            let (mut from, mut to) = (next, next);
            if self.take_sign("=") {
                from = self.number()?;
                to = from;
                if self.take_sign("...") {
                    to = self.number()?;
                }
            }
            next = to.wrapping_add(1);
            labels.push(Label { name: plain(&label), from, to });
            if !self.take_sign(",") && !self.is_sign("}") {
                return self.wrong(format!("{} is not expected in an enumeration", self.found()));
            }
        }
        let of = Type::Enumeration { of, labels: Rc::new(labels) };
        if let Some(name) = name {
            self.name(name, of.clone())?;
        }
        Ok(of)
    }
}

/// Names of fields begin with an underscore that is not part of them, so that they are no keywords.
fn plain(name: &str) -> String {
    name.strip_prefix('_').unwrap_or(name).into()
}

fn alignment(bits: i64, start: usize) -> Result<u32, Wrong> {
    let align = u32::try_from(bits).ok().filter(|align| align.is_power_of_two() && *align <= 1 << 12);
    align.ok_or_else(|| (start, format!("an alignment of {bits} bits: it is a power of two up to 4096")))
}
