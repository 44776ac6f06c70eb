//! Task sets: what is in them, and what can be proved about them.
#![allow(unsafe_code, reason = "names that C links to; pointers are checked where they are read")]

use std::ffi::c_char;

use temponet::{Task, TaskId, TaskSet};
use temponet_formats::Loaded;
use temponet_lab::analysis::{Analysis, json};
use temponet_lab::guarantee::Guaranteed;

use crate::boundary::{Failure, guarded, hand_out};
use crate::handles::{self, tn_set, tn_text};
use crate::input::{name, write};
use crate::loading::format;
use crate::result::tn_result;
use crate::text;

/// Task set behind a handle.
pub struct LoadedSet {
    pub set: TaskSet,
    warnings: Vec<String>,
    notes: Vec<String>,
}

impl LoadedSet {
    pub fn of(loaded: Loaded) -> LoadedSet {
        let Loaded { set, warnings, notes, .. } = loaded;
        LoadedSet { set, warnings, notes }
    }
}

/// A task. Times are in nanoseconds.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct tn_task {
    /// Period, or the least time between two arrivals; 0 if the task has none.
    pub period_ns: u64,
    /// Relative deadline.
    pub deadline_ns: u64,
    /// Worst-case execution time.
    pub wcet_ns: u64,
    /// Best-case execution time.
    pub bcet_ns: u64,
    /// Date of the first arrival.
    pub offset_ns: u64,
    /// Value of a deadline that is met.
    pub value: f64,
    /// Criticality; 0 is low.
    pub criticality: u8,
}

/// Returns a task, or that there is none of this number.
pub fn task(tasks: &[Task], index: usize) -> Result<(TaskId, &Task), Failure> {
    match tasks.get(index) {
        Some(task) => Ok((TaskId::new(index), task)),
        None => {
            let message = format!("there is no task {index}: the set has {}", tasks.len());
            Err(Failure::new(tn_result::OutOfRange, message))
        }
    }
}

/// Frees a task set. What has been made from it stays. Freeing the null handle does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn tn_set_free(set: tn_set) -> tn_result {
    guarded(|| if set.value == 0 { Ok(()) } else { handles::remove(set).map(drop) })
}

/// Writes the number of tasks. Tasks are numbered from 0 in the order of the file; the parts of a task follow each
/// other.
///
/// # Safety
/// `count` must have room for a number, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_set_task_count(set: tn_set, count: *mut usize) -> tn_result {
    // SAFETY: the caller guarantees the room.
    guarded(|| unsafe { write(count, "count", handles::find(set)?.set.tasks().len()) })
}

/// Writes the number of cores.
///
/// # Safety
/// `count` must have room for a number, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_set_core_count(set: tn_set, count: *mut usize) -> tn_result {
    // SAFETY: the caller guarantees the room.
    guarded(|| unsafe { write(count, "count", handles::find(set)?.set.cores()) })
}

/// Writes a task, by its number.
///
/// # Safety
/// `task` must have room for a task, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_set_task(set: tn_set, index: usize, task: *mut tn_task) -> tn_result {
    guarded(|| {
        let loaded = handles::find(set)?;
        let (_, found) = self::task(loaded.set.tasks(), index)?;
        let found = tn_task {
            period_ns: found.period().map_or(0, |period| period.0),
            deadline_ns: found.deadline.0,
            wcet_ns: found.wcet.0,
            bcet_ns: found.bcet.0,
            offset_ns: found.offset.0,
            value: found.value,
            criticality: found.criticality,
        };
        // SAFETY: the caller guarantees the room.
        unsafe { write(task, "task", found) }
    })
}

/// Copies the name of a task into `buffer`, as `tn_text_copy` does.
///
/// # Safety
/// `buffer` must have room for `size` bytes, and `length` for a number, unless they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_set_task_name(
    set: tn_set,
    index: usize,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> tn_result {
    guarded(|| {
        let loaded = handles::find(set)?;
        let (_, found) = task(loaded.set.tasks(), index)?;
        // SAFETY: the caller guarantees the room.
        unsafe { hand_out(&found.name, buffer, size, length) }
    })
}

/// Writes the number of the task with this name.
///
/// # Safety
/// `name` must end with a zero, and `index` must have room for a number, unless they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_set_find_task(set: tn_set, name: *const c_char, index: *mut usize) -> tn_result {
    guarded(|| {
        let loaded = handles::find(set)?;
        // SAFETY: the caller guarantees the zero.
        let name = unsafe { self::name(name, "name")? };
        let found = loaded.set.tasks().iter().position(|task| task.name == name);
        let found = found.ok_or_else(|| {
            let hint = temponet_wording::did_you_mean(name, loaded.set.tasks().iter().map(|task| task.name.as_str()));
            Failure::new(tn_result::OutOfRange, format!("there is no task {name:?}{hint}"))
        })?;
        // SAFETY: the caller guarantees the room.
        unsafe { write(index, "index", found) }
    })
}

/// Gives the warnings about a set and the notes on what it does not represent of another tool's file, one a line. The
/// text is empty if there are none.
///
/// # Safety
/// `notes` must have room for a handle, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_set_notes(set: tn_set, notes: *mut tn_text) -> tn_result {
    let make = || {
        let loaded = handles::find(set)?;
        Ok(loaded.warnings.iter().chain(&loaded.notes).map(|line| format!("{line}\n")).collect())
    };
    // SAFETY: the caller guarantees the room.
    guarded(|| unsafe { text::give(notes, make) })
}

/// Gives a set as the text of a file. `format` is a value of `tn_format`; `TN_FORMAT_AUTO` is TOML.
///
/// # Safety
/// `written` must have room for a handle, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_set_write(set: tn_set, format: u32, written: *mut tn_text) -> tn_result {
    let make = || {
        let format = self::format(format)?.unwrap_or(temponet_formats::Format::Toml);
        let loaded = handles::find(set)?;
        let refused =
            |error: temponet_formats::NotRepresentable| Failure::new(tn_result::NotRepresentable, error.to_string());
        temponet_formats::write(&loaded.set, format).map_err(refused)
    };
    // SAFETY: the caller guarantees the room.
    guarded(|| unsafe { text::give(written, make) })
}

fn serialized(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new(tn_result::NotRepresentable, error.to_string()))
}

/// Gives what the shield guarantees on a set, as the JSON object `guarantee` of `temponet analyze --json`.
///
/// # Safety
/// `report` must have room for a handle, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_set_guarantee(set: tn_set, report: *mut tn_text) -> tn_result {
    let make = || serialized(&Guaranteed::on(&handles::find(set)?.set).json_with_cores());
    // SAFETY: the caller guarantees the room.
    guarded(|| unsafe { text::give(report, make) })
}

/// Gives what can be proved about a set, as the JSON object of `temponet analyze --json`. Nothing is simulated.
///
/// This can take seconds for large sets.
///
/// # Safety
/// `report` must have room for a handle, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_set_analysis(set: tn_set, report: *mut tn_text) -> tn_result {
    let make = || {
        let loaded = handles::find(set)?;
        serialized(&json::report(&Analysis::of(loaded.set.clone(), None), &loaded.notes, None))
    };
    // SAFETY: the caller guarantees the room.
    guarded(|| unsafe { text::give(report, make) })
}
