//! Task sets from texts, files and the library itself.
#![allow(unsafe_code, reason = "names that C links to; pointers are checked where they are read")]

use std::ffi::c_char;
use std::path::Path;
use std::sync::Arc;

use temponet_formats::builtin::{self, Builtin};
use temponet_formats::{Format, LoadError, Loaded};
use temponet_wording::did_you_mean;

use crate::boundary::{Failure, guarded};
use crate::handles::{self, tn_set};
use crate::input::{name, text, write};
use crate::result::tn_result;
use crate::set::LoadedSet;

/// Format of a task set as text.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tn_format {
    /// The library looks at the text. XML begins with `<`, JSON with `{`; TOML has a line with `=` or `[` before any
    /// other; the rest is CSV.
    Auto = 0,
    /// TOML.
    Toml = 1,
    /// JSON with the keys of TOML, or an rt-app workload.
    Json = 2,
    /// CSV: a task or a job in each row.
    Csv = 3,
    /// XML of SimSo, which can be read but not written.
    SimSo = 4,
}

/// Returns the format with a number of [`tn_format`], where [`tn_format::Auto`] is `None`.
pub fn format(number: u32) -> Result<Option<Format>, Failure> {
    match number {
        0 => Ok(None),
        1 => Ok(Some(Format::Toml)),
        2 => Ok(Some(Format::Json)),
        3 => Ok(Some(Format::Csv)),
        4 => Ok(Some(Format::SimSo)),
        _ => Err(Failure::new(tn_result::OutOfRange, format!("there is no format {number}"))),
    }
}

/// Returns the format that a text looks like.
fn looks_like(text: &str) -> Format {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines().map(str::trim_start).filter(|line| !line.is_empty() && !line.starts_with('#'));
    match lines.next() {
        Some(line) if line.starts_with('<') => Format::SimSo,
        Some(line) if line.starts_with('{') => Format::Json,
        // The header of a CSV has names and separators.
        Some(line) if !line.starts_with('[') && !line.contains('=') => Format::Csv,
        _ => Format::Toml,
    }
}

fn refused(error: LoadError) -> Failure {
    Failure::new(tn_result::TaskSet, error.to_string())
}

/// # Safety
/// `to` must have room for a handle, unless it is null or not aligned.
unsafe fn give(to: *mut tn_set, read: impl FnOnce() -> Result<Loaded, Failure>) -> tn_result {
    guarded(|| {
        // SAFETY: the caller guarantees the room.
        unsafe {
            write(to, "set", tn_set { value: 0 })?;
            let set = LoadedSet::of(read()?);
            write(to, "set", handles::insert(|_| Arc::new(set))?)
        }
    })
}

/// Reads a task set from a text of `length` bytes, which need not end with a zero. `format` is a value of `tn_format`.
///
/// Error messages call the text `name`; without its extension that is the name of the set, unless the text has one.
/// Files that the text refers to, such as measured times, are looked up in the directory of `name`. If `name` is null,
/// it is `unnamed`.
///
/// # Safety
/// `source` must point to `length` bytes and `name` end with a zero, both unchanged during the call, and `set` must
/// have room for a handle, unless they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_set_parse(
    source: *const c_char,
    length: usize,
    format: u32,
    name: *const c_char,
    set: *mut tn_set,
) -> tn_result {
    let read = || {
        // SAFETY: the caller guarantees the zero.
        let origin = if name.is_null() { "unnamed" } else { unsafe { self::name(name, "name")? } };
        // SAFETY: the caller guarantees the bytes.
        let source = unsafe { text(source, length, origin)? };
        let format = self::format(format)?.unwrap_or_else(|| looks_like(source));
        temponet_formats::parse(source, format, Path::new(origin)).map_err(refused)
    };
    // SAFETY: the caller guarantees the room.
    unsafe { give(set, read) }
}

/// Reads a task set from a file: `.toml`, `.json`, `.csv` or `.xml`.
///
/// # Safety
/// `path` must end with a zero, and `set` must have room for a handle, unless they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_set_load(path: *const c_char, set: *mut tn_set) -> tn_result {
    // SAFETY: the caller guarantees the zero.
    let read = || temponet_formats::load(Path::new(unsafe { name(path, "path")? })).map_err(refused);
    // SAFETY: the caller guarantees the room.
    unsafe { give(set, read) }
}

/// Gives a built-in task set, such as `robot`. `temponet sets` lists them.
///
/// # Safety
/// `name` must end with a zero, and `set` must have room for a handle, unless they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_set_built_in(name: *const c_char, set: *mut tn_set) -> tn_result {
    let read = || {
        // SAFETY: the caller guarantees the zero.
        let name = unsafe { self::name(name, "name")? };
        let found = Builtin::find(name).ok_or_else(|| {
            let hint = did_you_mean(name, builtin::ALL.iter().map(|set| set.name));
            Failure::new(tn_result::TaskSet, format!("there is no built-in set {name:?}{hint}"))
        })?;
        found.load().map_err(refused)
    };
    // SAFETY: the caller guarantees the room.
    unsafe { give(set, read) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_write_looks_like_its_format() {
        for set in builtin::ALL {
            assert_eq!(looks_like(set.text), Format::Toml, "{}", set.name);
            let loaded = set.load().unwrap().set;
            for format in [Format::Toml, Format::Json, Format::Csv] {
                let Ok(text) = temponet_formats::write(&loaded, format) else { continue };
                assert_eq!(looks_like(&text), format, "{}", set.name);
            }
        }
        assert_eq!(looks_like("\u{feff}<?xml version=\"1.0\"?>\n<simulation/>"), Format::SimSo);
        assert_eq!(looks_like("# a comment, with commas\n\n[[task]]\n"), Format::Toml);
        assert_eq!(looks_like("release,deadline,execution\n0,5,2\n"), Format::Csv);
        assert_eq!(looks_like(""), Format::Toml);
    }
}
