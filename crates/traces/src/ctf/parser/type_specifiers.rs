//! Types of TSDL: integers, structures, variants, enumerations, and the names that they are given.

use std::rc::Rc;

use super::{Attribute, DEEPEST, MOST_FIELDS, Parser, Wrong, byte_order};
use crate::ctf::lexer::Token;
use crate::ctf::types::*;

impl Parser {
    /// Reads a type. With `before_name`, the last of the words of an alias is a name, which is returned as well.
    pub(super) fn specifier(&mut self, before_name: bool) -> Result<(Type, Option<String>), Wrong> {
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
    pub(super) fn name(&mut self, name: String, of: Type) -> Result<(), Wrong> {
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
    pub(super) fn declarator(&mut self, of: Type, name: Option<String>) -> Result<(String, Type), Wrong> {
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
