//! JSON schema of a task-set file, from the rows of `keys/`, for editors and other programs.
//!
//! It describes single values: kinds, ranges, words, required keys. What follows from several keys, such as a bcet
//! above the wcet, only the reader checks.

use serde_json::{Map, Value, json};

use crate::keys::{Kind, Need, SET, Spec, Specs};

/// A number with or without a unit.
const TIME: &str =
    r"^\s*\+?([0-9]+(_[0-9]+)*\.?([0-9]+(_[0-9]+)*)?|\.[0-9]+(_[0-9]+)*)([eE][+-]?[0-9]+)?\s*(ns|us|µs|ms|s)?\s*$";
/// The number zero, with or without a unit.
const ZERO: &str = r"^\s*\+?[0_]*\.?[0_]*([eE][+-]?[0-9]+)?\s*(ns|us|µs|ms|s)?\s*$";
/// Printable text.
const NAME: &str = r"^[^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f][^\u0000-\u001f\u007f-\u009f]*$";
const FRACTION: &str = r"^\s*\+?0*[1-9][0-9]*\s*/\s*\+?0*[1-9][0-9]*\s*$";

/// Returns the JSON schema (draft 2020-12) of task-set files in JSON and TOML.
pub fn schema() -> Value {
    let mut root = object(&SET.specs(), None);
    let time = |text: Value, number: &str| {
        json!({ "anyOf": [{ "type": "number", number: 0 }, text],
                "description": "a number in the file's time_unit, or a text with a unit, such as \"2.5ms\"" })
    };
    let head = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "TempoNet task set",
        "$defs": {
            "time": time(json!({ "type": "string", "pattern": TIME }), "minimum"),
            "positive_time": time(
                json!({ "type": "string", "pattern": TIME, "not": { "pattern": ZERO } }),
                "exclusiveMinimum",
            ),
        },
    });
    if let (Value::Object(root), Value::Object(head)) = (&mut root, head) {
        root.extend(head);
    }
    root
}

/// Returns the schema of a table with these keys. `model` is its name if it is one of several models.
fn object(specs: &[&Spec], model: Option<&str>) -> Value {
    let (mut properties, mut required, mut either) = (Map::new(), Vec::new(), Vec::new());
    for spec in specs {
        let mut described = match model {
            // The first key of a model is its name.
            Some(model) if properties.is_empty() => json!({ "const": model }),
            _ => value(&spec.kind),
        };
        if !spec.doc.is_empty() {
            described["description"] = spec.plain_doc().into();
        }
        match spec.need {
            Need::Required | Need::Parameter(_) => required.push(spec.name),
            Need::Unless(others) => {
                let names = std::iter::once(spec.name).chain(others.iter().copied());
                let any: Vec<Value> = names.map(|name| json!({ "required": [name] })).collect();
                either.push(json!({ "anyOf": any }))
            }
            Need::Default(text) => {
                let default =
                    text.strip_prefix('`').and_then(|text| serde_json::from_str(text.strip_suffix('`')?).ok());
                default.into_iter().for_each(|default: Value| described["default"] = default);
            }
        }
        if let (Some(alias), Kind::Table(table)) = (spec.alias, spec.kind) {
            table.specs().iter().for_each(|single| _ = properties.insert(alias.into(), value(&single.kind)));
        }
        properties.insert(spec.name.into(), described);
    }
    let mut table = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        table["required"] = required.into();
    }
    if !either.is_empty() {
        table["allOf"] = either.into();
    }
    table
}

/// Returns the schema of a value.
fn value(kind: &Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Name | Kind::Reference => json!({ "type": "string", "pattern": NAME }),
        Kind::Time => json!({ "$ref": "#/$defs/time" }),
        Kind::PositiveTime => json!({ "$ref": "#/$defs/positive_time" }),
        Kind::Number(least, most) => json!({ "type": "number", "minimum": least, "maximum": most }),
        Kind::Integer(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Word(words) => json!({ "type": "string", "enum": words() }),
        Kind::Fraction => json!({ "type": "string", "pattern": FRACTION }),
        Kind::List(kind, least, most) => {
            let mut list = json!({ "type": "array", "items": value(kind) });
            if *least > 0 {
                list["minItems"] = (*least).into();
            }
            if *most < usize::MAX {
                list["maxItems"] = (*most).into();
            }
            list
        }
        Kind::Named(kind) => json!({ "type": "object", "additionalProperties": value(kind) }),
        Kind::Table(table) => object(&table.specs(), None),
        Kind::Models(models) => {
            let tables: Vec<Value> = models().iter().map(|(name, specs)| object(specs, Some(name))).collect();
            json!({ "anyOf": tables })
        }
        Kind::Either(kinds) => {
            let mut all = Vec::new();
            for kind in *kinds {
                match value(kind) {
                    Value::Object(mut one) if one.len() == 1 && one.contains_key("anyOf") => {
                        all.extend(one.remove("anyOf").and_then(|list| list.as_array().cloned()).unwrap_or_default());
                    }
                    one => all.push(one),
                }
            }
            json!({ "anyOf": all })
        }
    }
}
