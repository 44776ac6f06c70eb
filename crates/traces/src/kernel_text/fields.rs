//! Fields of the scheduler's events, in the layout of the kernel (`prev_comm=…`) and in that of the plugins of perf and
//! trace-cmd (`comm:pid [prio]`). Names of threads may contain anything, so the fields are read from the end.

use memchr::memmem::Finder;

use crate::event::{Leaving, Names, Party, What};
use crate::number::integer;

/// Reads the fields of `sched_switch`.
pub(super) fn switch(text: &[u8], arrow: &Finder<'_>, names: &mut Names) -> Option<What> {
    let mut from = 0;
    // A name may contain an arrow, so each is tried.
    while let Some(found) = arrow.find(&text[from..]) {
        let at = from + found;
        from = at + 5;
        if let Some(what) = sides(text[..at].trim_ascii_end(), &text[at + 5..], names) {
            return Some(what);
        }
    }
    None
}

fn sides(left: &[u8], right: &[u8], names: &mut Names) -> Option<What> {
    let (before, state) = last_word(left)?;
    if let (Some(state), Some(next)) = (state.strip_prefix(b"prev_state="), right.strip_prefix(b"next_comm=")) {
        let leaving = Leaving::of_letters(state)?;
        let (before, priority) = last_word(before)?;
        let (comm, tid) = last_word(before)?;
        let from = Party {
            tid: number(tid.strip_prefix(b"prev_pid=")?)?,
            name: names.number(comm.strip_prefix(b"prev_comm=")?),
            priority: number(priority.strip_prefix(b"prev_prio=")?)?,
        };
        let to = keyed(next, b"next_pid=", b"next_prio=", names)?;
        return Some(What::Switch { from, leaving, to });
    }
    let leaving = Leaving::of_letters(state)?;
    Some(What::Switch { from: short(before, names)?, leaving, to: short(right, names)? })
}

/// Reads `comm pid=… prio=…` and whatever follows, from the end.
fn keyed(text: &[u8], pid_key: &[u8], priority_key: &[u8], names: &mut Names) -> Option<Party> {
    let mut text = text.trim_ascii_end();
    let mut priority = None;
    loop {
        let (before, word) = last_word(text)?;
        if let Some(value) = word.strip_prefix(pid_key) {
            return Some(Party { tid: number(value)?, name: names.number(before), priority: priority? });
        }
        if let Some(value) = word.strip_prefix(priority_key) {
            priority = Some(number(value)?);
        }
        text = before;
    }
}

/// Reads `comm:pid [prio]`, and whatever follows.
fn short(text: &[u8], names: &mut Names) -> Option<Party> {
    let open = memchr::memrchr(b'[', text)?;
    let close = open + memchr::memchr(b']', &text[open..])?;
    let priority = number(&text[open + 1..close])?;
    let before = text[..open].trim_ascii_end();
    let colon = memchr::memrchr(b':', before)?;
    Some(Party { tid: number(&before[colon + 1..])?, name: names.number(before[..colon].trim_ascii_start()), priority })
}

/// Reads the fields of a wake-up. Returns the thread, and whether the wake-up succeeded.
pub(super) fn wake(text: &[u8], names: &mut Names) -> Option<(Party, bool)> {
    let succeeded = memchr::memmem::rfind(text, b" success=0").is_none();
    let who = match text.strip_prefix(b"comm=") {
        Some(rest) => keyed(rest, b"pid=", b"prio=", names)?,
        None => short(text, names)?,
    };
    Some((who, succeeded))
}

/// Reads the fields of `sched_process_fork`: `… child_comm=… child_pid=…`. Returns the new thread.
pub(super) fn fork(text: &[u8]) -> Option<i32> {
    let (_, word) = last_word(text.trim_ascii_end())?;
    number(word.strip_prefix(b"child_pid=")?)
}

/// Splits off the last word.
fn last_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = memchr::memrchr(b' ', text)?;
    Some((&text[..space], &text[space + 1..]))
}

fn number(text: &[u8]) -> Option<i32> {
    i32::try_from(integer(text)?).ok()
}
