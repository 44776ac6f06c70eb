//! Texts out of the library, for the other tests.
// No test uses all of it.
#![allow(dead_code)]

use std::ffi::{CStr, CString, c_char};

use temponet_c::*;

pub const NULL_MODEL: tn_model = tn_model { value: 0 };

/// Message of the last error of this thread.
pub fn message() -> String {
    let length = unsafe { tn_last_error(std::ptr::null_mut(), 0) };
    let mut buffer = vec![0u8; length + 1];
    assert_eq!(unsafe { tn_last_error(buffer.as_mut_ptr().cast(), buffer.len()) }, length);
    CStr::from_bytes_until_nul(&buffer).unwrap().to_str().unwrap().to_string()
}

/// Content of a text, which is freed.
pub fn content(text: tn_text) -> String {
    let mut length = 0;
    assert_eq!(unsafe { tn_text_copy(text, std::ptr::null_mut(), 0, &mut length) }, tn_result::Ok);
    let mut buffer = vec![1u8; length + 1];
    assert_eq!(unsafe { tn_text_copy(text, buffer.as_mut_ptr().cast(), length + 1, &mut length) }, tn_result::Ok);
    assert_eq!(tn_text_free(text), tn_result::Ok);
    assert_eq!(buffer.pop(), Some(0));
    String::from_utf8(buffer).unwrap()
}

pub fn c(text: &str) -> CString {
    CString::new(text).unwrap()
}

/// The set of a text, or the result and its message.
pub fn parsed(text: &str, format: u32) -> Result<tn_set, (tn_result, String)> {
    let mut set = tn_set { value: 7 };
    let name = c("mine.toml");
    let result = unsafe { tn_set_parse(text.as_ptr().cast::<c_char>(), text.len(), format, name.as_ptr(), &mut set) };
    match result {
        tn_result::Ok => Ok(set),
        result => {
            assert_eq!(set.value, 0, "a set that could not be made");
            Err((result, message()))
        }
    }
}

pub fn built_in(name: &str) -> tn_set {
    let mut set = tn_set { value: 0 };
    assert_eq!(unsafe { tn_set_built_in(c(name).as_ptr(), &mut set) }, tn_result::Ok, "{}", message());
    set
}

pub fn ready(set: tn_set, scheduler: &str) -> tn_ready {
    let mut ready = tn_ready { value: 0 };
    let result = unsafe { tn_ready_new(set, c(scheduler).as_ptr(), NULL_MODEL, &mut ready) };
    assert_eq!(result, tn_result::Ok, "{}", message());
    ready
}

pub const IDLE: tn_core = tn_core { job: tn_job { of: 0, value: 0 }, task: 0, speed: 0 };
pub const UNDECIDED: tn_decision = tn_decision { next_ns: 0, stopped: 0, late: 0, cores: 0 };
