//! What this library is.
#![allow(unsafe_code, reason = "names that C links to")]

use std::ffi::{CStr, c_char};

use temponet_infer::Kernel;

/// Returns the version of the library, such as `0.1.0`. The text is constant and never freed.
#[unsafe(no_mangle)]
pub extern "C" fn tn_version() -> *const c_char {
    const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no zero in it"),
    };
    VERSION.as_ptr()
}

/// Returns the name of the kernel that networks use on this processor, such as `avx2`. The text is constant and never
/// freed.
#[unsafe(no_mangle)]
pub extern "C" fn tn_kernel() -> *const c_char {
    match Kernel::best() {
        Kernel::Scalar => c"scalar",
        Kernel::Simd128 => c"simd128",
        Kernel::Avx2 => c"avx2",
        Kernel::Avx512 => c"avx512",
        Kernel::Avx512Int8 => c"avx512-int8",
        Kernel::Amx => c"amx",
    }
    .as_ptr()
}
