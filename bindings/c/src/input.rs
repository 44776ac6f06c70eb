//! What comes in and goes out by pointers: checked for null and alignment, with limits where C gives none.
#![allow(unsafe_code, reason = "pointers of the caller, checked for null and alignment")]

use std::ffi::c_char;

use crate::boundary::Failure;
use crate::result::tn_result;

/// Longest name, file name or list of options, in bytes. A text without its zero is not followed further.
pub const TN_MOST_NAME: usize = 4096;

/// Longest text or weights file that is read from memory, in bytes.
pub const TN_MOST_BYTES: usize = 1 << 28;

/// Returns the pointer unless it is null or not aligned.
pub fn checked<T>(pointer: *mut T, what: &str) -> Result<*mut T, Failure> {
    match pointer.is_null() || !pointer.is_aligned() {
        true => Err(Failure::new(tn_result::Pointer, format!("{what}: the pointer is null or not aligned"))),
        false => Ok(pointer),
    }
}

/// Writes a result.
///
/// # Safety
/// `to` must have room for a value, unless it is null or not aligned.
pub unsafe fn write<T>(to: *mut T, what: &str, value: T) -> Result<(), Failure> {
    let to = checked(to, what)?;
    // SAFETY: not null and aligned, as `checked` says; the caller guarantees the room.
    unsafe { to.write(value) };
    Ok(())
}

/// Writes a length, unless nobody wants it.
///
/// # Safety
/// `to` must have room for a number, unless it is null.
pub unsafe fn write_length(length: usize, to: *mut usize) -> Result<(), Failure> {
    match to.is_null() {
        true => Ok(()),
        // SAFETY: the caller guarantees the room.
        false => unsafe { write(to, "length", length) },
    }
}

/// Reads a value.
///
/// # Safety
/// `from` must point to a value, unless it is null or not aligned.
pub unsafe fn read<T: Copy>(from: *const T, what: &str) -> Result<T, Failure> {
    let from = checked(from.cast_mut(), what)?;
    // SAFETY: not null and aligned, as `checked` says; the caller guarantees the value.
    Ok(unsafe { from.read() })
}

/// Returns the text of a pointer and a length, which must be UTF-8.
///
/// # Safety
/// `from` must point to `length` bytes that do not change during the call, unless it is null.
pub unsafe fn text<'a>(from: *const c_char, length: usize, what: &str) -> Result<&'a str, Failure> {
    // SAFETY: the caller guarantees the bytes.
    let bytes = unsafe { bytes(from.cast(), length, what)? };
    std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        Failure::new(tn_result::NotUtf8, format!("{what}:{line}: is not UTF-8 text"))
    })
}

/// Returns the bytes of a pointer and a length. A length of zero needs no pointer.
///
/// # Safety
/// As for [`text`].
pub unsafe fn bytes<'a>(from: *const u8, length: usize, what: &str) -> Result<&'a [u8], Failure> {
    if length > TN_MOST_BYTES {
        let message = format!("{what}: {length} bytes are more than {TN_MOST_BYTES}");
        return Err(Failure::new(tn_result::TooLarge, message));
    }
    if length == 0 {
        return Ok(&[]);
    }
    let from = checked(from.cast_mut(), what)?;
    // SAFETY: not null, as `checked` says; the caller guarantees the bytes, and they are fewer than `isize::MAX`.
    Ok(unsafe { std::slice::from_raw_parts(from, length) })
}

/// Returns a text that ends with a zero, which must be UTF-8 and at most [`TN_MOST_NAME`] bytes long.
///
/// # Safety
/// `from` must point to bytes that end with a zero and do not change during the call, unless it is null.
pub unsafe fn name<'a>(from: *const c_char, what: &str) -> Result<&'a str, Failure> {
    let from = checked(from.cast_mut(), what)?.cast_const();
    // SAFETY: no byte behind the zero is read, and not null, as `checked` says; the caller guarantees the zero.
    let length = (0..=TN_MOST_NAME).find(|place| unsafe { from.add(*place).read() } == 0);
    let Some(length) = length else {
        return Err(Failure::new(tn_result::TooLarge, format!("{what}: the text is longer than {TN_MOST_NAME} bytes")));
    };
    // SAFETY: these bytes have just been read.
    unsafe { text(from, length, what) }
}

/// Copies as much of a text as fits, whole characters only, and a zero. Returns whether all of it did.
///
/// # Safety
/// `buffer` must have room for `size` bytes, unless it is null.
pub unsafe fn copy_text(text: &str, buffer: *mut c_char, size: usize) -> bool {
    if buffer.is_null() || size == 0 {
        return false;
    }
    let mut length = text.len().min(size - 1);
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    // SAFETY: `length` is less than `size`, for which the caller guarantees room; a text of ours is not in it.
    unsafe {
        buffer.copy_from_nonoverlapping(text.as_ptr().cast(), length);
        buffer.add(length).write(0);
    }
    length == text.len()
}

/// Writes as many elements as there are into a buffer, or none if it is too small.
///
/// # Safety
/// `to` must have room for `room` elements, unless it is null or not aligned.
pub unsafe fn write_all<T>(
    elements: impl ExactSizeIterator<Item = T>,
    to: *mut T,
    room: usize,
    what: &str,
) -> Result<(), Failure> {
    let count = elements.len();
    if count > room {
        let message = format!("{what}: there are {count}, and the buffer has room for {room}");
        return Err(Failure::new(tn_result::SmallBuffer, message));
    }
    if count > 0 {
        let to = checked(to, what)?;
        for (place, element) in elements.enumerate().take(count) {
            // SAFETY: not null and aligned, as `checked` says; the place is within the room that the caller guarantees.
            unsafe { to.add(place).write(element) };
        }
    }
    Ok(())
}
