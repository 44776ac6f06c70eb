//! What a call returns.
#![allow(unsafe_code, reason = "names that C links to")]

use std::ffi::{CStr, c_char};

/// Result of a call. Everything but `TN_RESULT_OK` is an error, about which `tn_last_error` says more.
///
/// Unless a function says otherwise, a call that fails has changed nothing, apart from a handle that it was to return,
/// which is then null.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tn_result {
    /// The call succeeded.
    Ok = 0,
    /// A pointer is null, or not aligned for its type.
    Pointer = 1,
    /// The handle is null.
    NullHandle = 2,
    /// The handle is stale: its object has been freed. Or it was never given out.
    StaleHandle = 3,
    /// The handle is one of another type.
    WrongHandle = 4,
    /// Another thread is using the object.
    Busy = 5,
    /// An earlier call on the object ended in `TN_RESULT_PANIC`. It can only be freed.
    Broken = 6,
    /// A mistake in the library was caught. Please report it with the message of `tn_last_error`.
    Panic = 7,
    /// A text is not UTF-8, or a file name not one of this system.
    NotUtf8 = 8,
    /// A text, a file name or a number is too large, or there are too many objects.
    TooLarge = 9,
    /// There is no task, no element or no format of that number.
    OutOfRange = 10,
    /// A buffer is too small for the result. Where there is a length to return, it has been written.
    SmallBuffer = 11,
    /// A task set cannot be used. The message names file, line and value.
    TaskSet = 12,
    /// A model cannot be used.
    Model = 13,
    /// There is no such scheduler, or its options are wrong.
    Scheduler = 14,
    /// The scheduler, or the loop of ready jobs, cannot run on this system.
    NotApplicable = 15,
    /// The job has left: it has completed, was aborted, or was stopped by a decision. Or there never was one.
    JobLeft = 16,
    /// The job belongs to other ready jobs.
    ForeignJob = 17,
    /// Time went back, or beyond 30 years.
    Time = 18,
    /// The release cannot be: in the future, due before it is released, without work, or with a negative value.
    Release = 19,
    /// The scheduler gave an illegal assignment. Jobs stay on the cores that they have.
    Assignment = 20,
    /// The result cannot be represented.
    NotRepresentable = 21,
}

/// Returns what a result means, in one sentence. The text is constant and never freed.
#[unsafe(no_mangle)]
pub extern "C" fn tn_result_text(result: u32) -> *const c_char {
    meaning(result).as_ptr()
}

fn meaning(result: u32) -> &'static CStr {
    match result {
        0 => c"the call succeeded",
        1 => c"a pointer is null or not aligned",
        2 => c"the handle is null",
        3 => c"the handle is stale or was never given out",
        4 => c"the handle is one of another type",
        5 => c"another thread is using the object",
        6 => c"an earlier call on the object broke it; it can only be freed",
        7 => c"a mistake in the library was caught",
        8 => c"a text is not UTF-8",
        9 => c"a text, a file name or a number is too large, or there are too many objects",
        10 => c"there is no element of that number",
        11 => c"a buffer is too small for the result",
        12 => c"the task set cannot be used",
        13 => c"the model cannot be used",
        14 => c"there is no such scheduler, or its options are wrong",
        15 => c"the scheduler or the loop cannot run on this system",
        16 => c"the job has left",
        17 => c"the job belongs to other ready jobs",
        18 => c"time went back or too far",
        19 => c"the release cannot be",
        20 => c"the scheduler gave an illegal assignment",
        21 => c"the result cannot be represented",
        _ => c"no result of this library",
    }
}
