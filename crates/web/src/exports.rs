//! The functions of the module, and what it calls in the page.
//!
//! The page asks for room for a request, writes it, calls, and reads the answer where it is told to. It gives the
//! module three functions: one hears of progress, one of a panic, after which the module is thrown away, and one reads
//! pieces of files.
#![allow(unsafe_code)]

use std::io::{Error, Result};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use temponet_lab::progress;

#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Hears that a share of the work is done, or −1 if that is not known, and what is being done.
    fn progressed(share: f64, words: *const u8, length: usize);
    /// Hears why the module cannot go on.
    fn failed(words: *const u8, length: usize);
    /// Writes a piece of a file to a place, and returns how many bytes there were, or −1 if it cannot be read.
    fn read(file: usize, offset: f64, to: *mut u8, length: usize) -> isize;
}

/// The request, and then the answer.
static MESSAGE: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn message() -> MutexGuard<'static, Vec<u8>> {
    MESSAGE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes room for a request of this many bytes, and returns where it is.
#[unsafe(no_mangle)]
pub extern "C" fn room(bytes: usize) -> *mut u8 {
    let mut message = message();
    message.clear();
    message.resize(bytes, 0);
    message.as_mut_ptr()
}

/// Carries out the request and returns where the answer is.
#[unsafe(no_mangle)]
pub extern "C" fn call() -> *const u8 {
    listen();
    let request = std::mem::take(&mut *message());
    let answer = match std::str::from_utf8(&request) {
        Ok(request) => crate::answer(request, read_piece),
        Err(error) => serde_json::json!({ "error": format!("the request is no text: {error}") }).to_string(),
    };
    let mut message = message();
    *message = answer.into_bytes();
    message.as_ptr()
}

/// Returns how many bytes the answer has.
#[unsafe(no_mangle)]
pub extern "C" fn length() -> usize {
    message().len()
}

/// Reads a piece of a file of the page.
fn read_piece(file: usize, offset: u64, to: &mut [u8]) -> Result<usize> {
    // SAFETY: the page writes at most `length` bytes to the place. Offsets stay exact, as no file has 2^53 bytes.
    let count = unsafe { read(file, offset as f64, to.as_mut_ptr(), to.len()) };
    usize::try_from(count).map_err(|_| Error::other("cannot be read any more; was it changed or removed?"))
}

/// Lets the page hear of progress and panics.
fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the page reads `length` bytes of a text that lives until the call returns.
        progress::listen(|share, words| unsafe { progressed(share.unwrap_or(-1.0), words.as_ptr(), words.len()) });
        std::panic::set_hook(Box::new(|panic| {
            let words = panic.to_string();
            // SAFETY: as above.
            unsafe { failed(words.as_ptr(), words.len()) };
        }));
    });
}
