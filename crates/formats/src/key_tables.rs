//! The keys of task-set files as tables in Markdown, for `docs/task-sets.md`.

use crate::keys::{
    BURST, CHAIN, CORE, COSTS, JOB, Kind, MODE, MODELS, Need, PART, SECTION, SERVER, SET, Spec, Specs, TASK,
};

/// Returns the key tables by name: `file`, `task`, … and the models of `execution`.
pub fn key_tables() -> Vec<(&'static str, String)> {
    let plain = |table: &dyn Specs| key_table(&table.specs(), false);
    vec![
        ("file", plain(&SET)),
        ("task", key_table(&TASK.specs(), true)),
        ("part", plain(&PART)),
        ("execution", models()),
        ("section", plain(&SECTION)),
        ("core", plain(&CORE)),
        ("costs", plain(&COSTS)),
        ("burst", plain(&BURST)),
        ("mode", plain(&MODE)),
        ("server", plain(&SERVER)),
        ("chain", plain(&CHAIN)),
        ("job", plain(&JOB)),
    ]
}

/// Returns a table of keys, with their columns in CSV if it is to have them.
fn key_table(specs: &[&Spec], has_csv: bool) -> String {
    let (head, rule) = if has_csv { (" CSV |", "---|") } else { ("", "") };
    let mut out = format!("| key | value | meaning | default |{head}\n|---|---|---|---|{rule}\n");
    for spec in specs {
        let (key, value) = match spec.kind {
            Kind::List(Kind::Table(_), ..) if !has_csv => (format!("[[{}]]", spec.name), "tables".into()),
            kind => (spec.name.into(), kind.described()),
        };
        let last = if has_csv { format!(" {} |", column(spec)) } else { String::new() };
        out += &format!("| `{key}` | {value} | {}{} | {} |{last}\n", spec.doc, see(spec), default(spec));
    }
    out
}

/// Returns the link to more about a key.
fn see(spec: &Spec) -> String {
    match spec.see.split_once('#') {
        None => String::new(),
        Some(("", _)) => format!(", see [below]({})", spec.see),
        Some((page, _)) => format!(", see [{page}]({})", spec.see),
    }
}

fn default(spec: &Spec) -> String {
    match spec.need {
        Need::Required | Need::Parameter(_) => "required".into(),
        Need::Unless(others) => {
            let others: Vec<String> = others.iter().map(|other| format!("`{other}`")).collect();
            format!("required, except with {}", others.join(" or "))
        }
        Need::Default(text) => text.into(),
    }
}

/// Returns the name of the CSV column of a key, or a dash.
fn column(spec: &Spec) -> String {
    spec.column().map_or("–".into(), |name| format!("`{name}`"))
}

/// Returns the table of the models of execution times.
fn models() -> String {
    let mut out = String::from("| `execution` | what a job takes | needs |\n|---|---|---|\n");
    for model in &MODELS {
        let examples: Vec<String> = model.examples.iter().map(|example| format!("`{example}`")).collect();
        out += &format!("| {} | {} | {} |\n", examples.join("<br>"), model.doc, model.needs);
    }
    out
}

impl Kind {
    /// Returns the kind of value and its range in words, as Markdown.
    pub(crate) fn described(&self) -> String {
        let all = |kinds: &[Kind]| kinds.iter().map(Kind::described).collect::<Vec<_>>().join(" or ");
        match self {
            Kind::Text | Kind::Name => "text".into(),
            Kind::Reference => "name".into(),
            Kind::Time => "time".into(),
            Kind::PositiveTime => "time above 0".into(),
            Kind::Number(least, most) if *most >= 1e9 => format!("number from {least} to {most:e}"),
            Kind::Number(least, most) => format!("number from {least} to {most}"),
            Kind::Integer(..0, most) if *most >= i64::from(i32::MAX) => "whole number".into(),
            Kind::Integer(least, most) if *most >= i64::from(i32::MAX) => format!("whole number from {least} on"),
            Kind::Integer(least, most) => format!("whole number from {least} to {most}"),
            Kind::Bool => "`true` or `false`".into(),
            Kind::Word(words) => words().iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", "),
            Kind::Fraction => "`\"m/k\"`".into(),
            Kind::List(kind, least, most) if least == most => format!("list of {least}: {}", kind.described()),
            Kind::List(kind, ..) => format!("list: {}", kind.described()),
            Kind::Named(kind) => format!("`{{ task = … }}` with a {}", kind.described()),
            Kind::Table(table) => {
                let keys: Vec<&str> = table.specs().iter().map(|spec| spec.name).collect();
                format!("`{{ {} }}`", keys.join(", "))
            }
            Kind::Models(models) if models().len() > 2 => "table with a `model`".into(),
            Kind::Models(models) => {
                let keys =
                    |specs: &[&Spec]| specs[1..].iter().map(|spec| format!(", {}", spec.name)).collect::<String>();
                let table = |(name, specs): &(&str, Vec<&Spec>)| format!("`{{ model = \"{name}\"{} }}`", keys(specs));
                models().iter().map(table).collect::<Vec<_>>().join(" or ")
            }
            Kind::Either(kinds) => match kinds {
                [one, Kind::List(item, ..)] if std::mem::discriminant(one) == std::mem::discriminant(*item) => {
                    format!("{}, or a list", one.described())
                }
                kinds => all(kinds),
            },
        }
    }
}

impl Spec {
    /// Returns the meaning of the key without Markdown.
    pub(crate) fn plain_doc(&self) -> String {
        self.doc.replace('`', "")
    }
}
