//! The boundary between C and Rust: a call runs in [`guarded`], which turns errors and panics into codes and keeps the
//! message of the last one for each thread.
#![allow(unsafe_code, reason = "a name that C links to; it writes into a checked buffer")]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::c_char;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::input::{copy_text, write_length};
use crate::result::tn_result;

/// An error: what C gets, and the message for people.
#[derive(Debug)]
pub struct Failure {
    pub result: tn_result,
    pub message: String,
}

impl Failure {
    pub fn new(result: tn_result, message: impl Into<String>) -> Failure {
        Failure { result, message: message.into() }
    }
}

thread_local! {
    static LAST: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs the body of a call. A panic in it ends here.
pub fn guarded(body: impl FnOnce() -> Result<(), Failure>) -> tn_result {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return tn_result::Ok,
        Ok(Err(failure)) => failure,
        Err(payload) => Failure::new(tn_result::Panic, said(payload)),
    };
    let Failure { result, message } = failure;
    // A thread that is ending has no place for messages any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = message);
    result
}

/// Returns what a panic said.
fn said(payload: Box<dyn Any + Send>) -> String {
    let text = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_string(),
        (_, Some(text)) => text.clone(),
        _ => "a panic without a message".into(),
    };
    // Dropping what a panic carries may panic itself.
    std::mem::forget(payload);
    text
}

/// Copies the message of the last error of this thread into `buffer`, which the caller owns, with a zero at the end.
/// A message that does not fit is cut between two characters. Returns the number of bytes of the whole message without
/// its zero; 0 if there has been no error.
///
/// `buffer` may be null if `size` is 0. Calls that succeed leave the message as it is. This call never fails and is no
/// error itself.
///
/// # Safety
/// `buffer` must have room for `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_last_error(buffer: *mut c_char, size: usize) -> usize {
    let copy = || {
        LAST.try_with(|last| {
            let last = last.borrow();
            // SAFETY: the caller guarantees the room; `copy_text` writes at most `size` bytes, and none if it is null.
            unsafe { copy_text(&last, buffer, size) };
            last.len()
        })
        .unwrap_or(0)
    };
    catch_unwind(AssertUnwindSafe(copy)).unwrap_or(0)
}

/// Copies a text into a buffer for a call that reports its length through a pointer, which may be null.
///
/// # Safety
/// `buffer` must have room for `size` bytes, and `length` for a number, unless they are null.
pub unsafe fn hand_out(text: &str, buffer: *mut c_char, size: usize, length: *mut usize) -> Result<(), Failure> {
    // SAFETY: the caller guarantees both; null is checked by the callees.
    unsafe {
        write_length(text.len(), length)?;
        if !buffer.is_null() || size > 0 {
            crate::input::checked(buffer, "buffer")?;
            if !copy_text(text, buffer, size) {
                let needs = text.len() + 1;
                return Err(Failure::new(
                    tn_result::SmallBuffer,
                    format!("the text needs {needs} bytes, and the buffer has {size}"),
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> String {
        LAST.with(|last| last.borrow().clone())
    }

    #[test]
    fn a_panic_is_a_result_with_its_message() {
        assert_eq!(guarded(|| panic!("number {}", 7)), tn_result::Panic);
        assert_eq!(message(), "number 7");
        assert_eq!(guarded(|| panic!("plain")), tn_result::Panic);
        assert_eq!(guarded(|| Ok(())), tn_result::Ok);
        assert_eq!(message(), "plain", "a success keeps the message");
    }

    #[test]
    fn what_a_panic_carries_is_not_dropped() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("while it was dropped");
            }
        }
        assert_eq!(guarded(|| std::panic::panic_any(Bomb)), tn_result::Panic);
    }
}
