//! Texts of the library.
#![allow(unsafe_code, reason = "names that C links to; buffers are checked where they are written")]

use std::ffi::c_char;

use crate::boundary::{Failure, guarded, hand_out};
use crate::handles::{self, tn_text};
use crate::input::write;
use crate::result::tn_result;

/// Writes the handle of a new text, or the null handle if there is none.
///
/// # Safety
/// `to` must have room for a handle, unless it is null or not aligned.
pub unsafe fn give(to: *mut tn_text, make: impl FnOnce() -> Result<String, Failure>) -> Result<(), Failure> {
    // SAFETY: the caller guarantees the room.
    unsafe {
        write(to, "text", tn_text { value: 0 })?;
        let text = make()?;
        write(to, "text", handles::insert(|_| text.into())?)
    }
}

/// Copies a text into `buffer`, which the caller owns, with a zero at the end, and writes its number of bytes without
/// the zero to `length`, if that is not null. A buffer that is too small is an error and holds a beginning of the text.
/// With a null `buffer` and a `size` of 0 only the length is written.
///
/// # Safety
/// `buffer` must have room for `size` bytes, and `length` for a number, unless they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_text_copy(
    text: tn_text,
    buffer: *mut c_char,
    size: usize,
    length: *mut usize,
) -> tn_result {
    // SAFETY: the caller guarantees the room.
    guarded(|| unsafe { hand_out(&handles::find(text)?, buffer, size, length) })
}

/// Frees a text. Freeing the null handle does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn tn_text_free(text: tn_text) -> tn_result {
    guarded(|| if text.value == 0 { Ok(()) } else { handles::remove(text).map(drop) })
}
