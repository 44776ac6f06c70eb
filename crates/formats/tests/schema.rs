//! Contract: the JSON schema accepts every file that the reader accepts, and what it refuses the reader refuses. A
//! validator of its own, of which `bench/peers/jsonschema_task_sets.py` is the independent counterpart, knows every
//! keyword that the schema uses.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use temponet_formats::{Format, builtin, schema, template, write};

use crate::read;
use crate::round_trip::any_set;

/// Returns why a value is not what a schema, a part of `root`, describes; `None` if it is.
fn problem(root: &Value, schema: &Value, value: &Value) -> Option<String> {
    let number = |bound: &Value| bound.as_f64().unwrap();
    let list = |of: &Value| of.as_array().unwrap().clone();
    let matches =
        |pattern: &Value, text: &str| regex_lite::Regex::new(pattern.as_str().unwrap()).unwrap().is_match(text);
    let wrong = |what: &str| Some(format!("{value} {what}"));
    let object = schema.as_object().unwrap();
    object.iter().find_map(|(keyword, rule)| match keyword.as_str() {
        "$schema" | "$defs" | "title" | "description" | "default" => None,
        "$ref" => problem(root, root.pointer(&rule.as_str().unwrap()[1..]).unwrap(), value),
        "type" => {
            let is = match rule.as_str().unwrap() {
                "object" => value.is_object(),
                "array" => value.is_array(),
                "string" => value.is_string(),
                "boolean" => value.is_boolean(),
                "number" => value.is_number(),
                "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
                other => panic!("unknown type {other}"),
            };
            if is { None } else { wrong(&format!("is no {rule}")) }
        }
        "const" => (rule != value).then(|| format!("{value} is not {rule}")),
        "enum" => (!list(rule).contains(value)).then(|| format!("{value} is none of {rule}")),
        "pattern" => value.as_str().filter(|text| !matches(rule, text)).map(|text| format!("{text:?} is not {rule}")),
        "minimum" => value.as_f64().filter(|value| *value < number(rule)).and_then(|_| wrong("is too small")),
        "exclusiveMinimum" => value.as_f64().filter(|value| *value <= number(rule)).and_then(|_| wrong("is too small")),
        "maximum" => value.as_f64().filter(|value| *value > number(rule)).and_then(|_| wrong("is too large")),
        "minItems" => {
            value.as_array().filter(|all| (all.len() as f64) < number(rule)).and_then(|_| wrong("is too short"))
        }
        "maxItems" => value.as_array().filter(|all| all.len() as f64 > number(rule)).and_then(|_| wrong("is too long")),
        "items" => value.as_array().and_then(|items| items.iter().find_map(|item| problem(root, rule, item))),
        "not" => problem(root, rule, value).is_none().then(|| format!("{value} is {rule}")),
        "allOf" => list(rule).iter().find_map(|one| problem(root, one, value)),
        "anyOf" => {
            let problems: Vec<_> = list(rule).iter().filter_map(|one| problem(root, one, value)).collect();
            (problems.len() == list(rule).len()).then(|| problems.join("; "))
        }
        "required" => {
            let missing =
                |key: &Value| value.as_object().is_some_and(|table| !table.contains_key(key.as_str().unwrap()));
            list(rule).iter().find(|key| missing(key)).map(|key| format!("{value} has no {key}"))
        }
        "properties" => {
            let entry = |(key, rule): (&String, &Value)| problem(root, rule, value.get(key)?);
            rule.as_object().unwrap().iter().find_map(entry)
        }
        "additionalProperties" => {
            let known = |key: &str| object.get("properties").is_some_and(|known| known.get(key).is_some());
            let mut others = value.as_object().into_iter().flatten().filter(|(key, _)| !known(key));
            match rule {
                Value::Bool(false) => others.next().map(|(key, _)| format!("unknown key {key:?}")),
                rule => others.find_map(|(_, value)| problem(root, rule, value)),
            }
        }
        other => panic!("unknown keyword {other}"),
    })
}

fn refused(value: &Value) -> Option<String> {
    static SCHEMA: LazyLock<Value> = LazyLock::new(schema);
    problem(&SCHEMA, &SCHEMA, value)
}

#[test]
fn every_built_in_set_and_the_template_are_valid() {
    let texts = builtin::ALL.iter().map(|set| set.text.to_string()).chain([template()]);
    for text in texts {
        let value: Value = toml::from_str(&text).unwrap();
        assert_eq!(refused(&value), None, "{text}");
    }
}

/// A valid file with a table of every kind.
fn every_table() -> Value {
    json!({
        "$schema": "temponet.schema.json",
        "costs": { "migration": "5us" },
        "core": [{ "name": "big", "count": 2 }],
        "server": [{ "name": "s", "budget": 1, "period": 10 }],
        "task": [
            { "name": "a", "period": 10, "wcet": 4, "bcet": 1, "preemption": { "every": 1 }, "estimate": { "error": 0.3 },
              "execution": { "model": "normal", "deviation": 1 }, "section": [{ "resource": "r", "length": 1 }] },
            { "name": "b", "period": 10, "wcet": 4, "kind": "sporadic", "gap": { "model": "uniform", "max": 20 } },
        ],
        "burst": [{ "name": "peak", "jobs": 2, "every": 50, "wcet": 1 }],
        "chain": [{ "name": "c", "tasks": ["a", "d"] }],
        "mode": [{ "at": 5 }],
    })
}

#[test]
fn a_wrong_value_of_any_key_is_refused_by_schema_and_reader() {
    let mut base = every_table();
    let follower = json!({ "name": "d", "after": ["a"], "wcet": 1 });
    base["task"].as_array_mut().unwrap().push(follower);
    let reads = |file: &Value| read(&file.to_string(), Format::Json);
    assert_eq!((refused(&base), reads(&base).err()), (None, None));
    let schema = schema();
    let wrong = [
        json!({ "no": 1 }),
        json!([[]]),
        json!(-1),
        json!(-2.5),
        json!(1e300),
        json!(true),
        json!(""),
        json!("1 parsec"),
        json!("-3ms"),
        json!("0us"),
        json!("huge"),
        json!([]),
        json!(0),
    ];
    // Where the keys of a table are in the schema, and where there is such a table in the file.
    let tables = [
        ("", ""),
        ("/costs", "/costs"),
        ("/core/items", "/core/0"),
        ("/server/items", "/server/0"),
        ("/task/items", "/task/0"),
        ("/task/items", "/task/1"),
        ("/task/items/properties/section/items", "/task/0/section/0"),
        ("/task/items/properties/estimate", "/task/0/estimate"),
        ("/burst/items", "/burst/0"),
        ("/chain/items", "/chain/0"),
        ("/mode/items", "/mode/0"),
        ("/task/items/properties/preemption/anyOf/1", "/task/0/preemption"),
        ("/task/items/properties/gap/anyOf/0", "/task/1/gap"),
    ];
    let mut count = 0;
    for (described, place) in tables {
        let described = if described.is_empty() { String::new() } else { format!("/properties{described}") };
        let properties = schema.pointer(&format!("{described}/properties")).unwrap_or_else(|| panic!("{described}"));
        for key in properties.as_object().unwrap().keys() {
            let mut refusals = 0;
            for value in &wrong {
                let mut file = base.clone();
                file.pointer_mut(place).unwrap()[key] = value.clone();
                if let Some(problem) = refused(&file) {
                    refusals += 1;
                    assert!(reads(&file).is_err(), "{place}/{key} = {value}: only the schema refuses it: {problem}");
                }
            }
            assert!(refusals > 0, "{place}/{key} takes every value");
            count += 1;
        }
        let mut file = base.clone();
        file.pointer_mut(place).unwrap()["unheard_of"] = json!(1);
        assert!(refused(&file).is_some() && reads(&file).is_err(), "{place}");
    }
    assert!(count > 80, "{count}");
}

#[test]
fn what_a_table_has_to_have_is_required_by_schema_and_reader() {
    for (place, key) in [
        ("/task/0", "name"),
        ("/task/0", "period"),
        ("/task/0/section/0", "length"),
        ("/server/0", "budget"),
        ("/burst/0", "jobs"),
    ] {
        let mut file = every_table();
        file.as_object_mut().unwrap().remove("chain");
        file.pointer_mut(place).unwrap().as_object_mut().unwrap().remove(key);
        assert!(refused(&file).is_some(), "{place}/{key}");
        assert!(read(&file.to_string(), Format::Json).is_err(), "{place}/{key}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_valid(set in any_set()) {
        let value: Value = serde_json::from_str(&write(&set, Format::Json).unwrap()).unwrap();
        prop_assert_eq!(refused(&value), None);
    }
}
