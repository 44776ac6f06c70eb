//! Parser of TSDL: tokens to the types and classes of a trace.

mod type_specifiers;

use std::collections::HashMap;

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
}
