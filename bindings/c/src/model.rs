//! Models of the learned scheduler.
#![allow(unsafe_code, reason = "names that C links to; pointers are checked where they are read")]

use std::ffi::c_char;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use temponet::{Model, ModelError};

use crate::boundary::{Failure, guarded};
use crate::handles::{self, tn_model};
use crate::input::{bytes, name, write};
use crate::result::tn_result;

/// Model behind a handle.
pub struct LoadedModel(pub Arc<Model>);

/// The built-in model, which is read once.
pub fn built_in() -> Result<Arc<Model>, Failure> {
    static MODEL: Mutex<Option<Arc<Model>>> = Mutex::new(None);
    let mut model = MODEL.lock().unwrap_or_else(PoisonError::into_inner);
    if model.is_none() {
        *model = Some(Arc::new(Model::built_in().map_err(|error| refused("the built-in model", &error))?));
    }
    model.clone().ok_or_else(|| Failure::new(tn_result::Model, "there is no built-in model"))
}

fn refused(what: &str, error: &ModelError) -> Failure {
    Failure::new(tn_result::Model, format!("{what}: {error}"))
}

/// # Safety
/// `to` must have room for a handle, unless it is null or not aligned.
unsafe fn give(to: *mut tn_model, make: impl FnOnce() -> Result<Arc<Model>, Failure>) -> tn_result {
    guarded(|| {
        // SAFETY: the caller guarantees the room.
        unsafe {
            write(to, "model", tn_model { value: 0 })?;
            let model = make()?;
            write(to, "model", handles::insert(|_| Arc::new(LoadedModel(model)))?)
        }
    })
}

/// Gives the built-in model.
///
/// # Safety
/// `model` must have room for a handle, unless it is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_model_built_in(model: *mut tn_model) -> tn_result {
    // SAFETY: the caller guarantees the room.
    unsafe { give(model, built_in) }
}

/// Reads a weights file (safetensors), such as `temponet train` writes.
///
/// # Safety
/// `path` must end with a zero, and `model` must have room for a handle, unless they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_model_load(path: *const c_char, model: *mut tn_model) -> tn_result {
    let read = || {
        // SAFETY: the caller guarantees the zero.
        let path = unsafe { name(path, "path")? };
        Model::load(Path::new(path)).map(Arc::new).map_err(|error| refused(path, &error))
    };
    // SAFETY: the caller guarantees the room.
    unsafe { give(model, read) }
}

/// Reads the content of a weights file from memory. The bytes are copied.
///
/// # Safety
/// `data` must point to `length` bytes that do not change during the call, and `model` must have room for a handle,
/// unless they are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tn_model_from_bytes(data: *const u8, length: usize, model: *mut tn_model) -> tn_result {
    let read = || {
        // SAFETY: the caller guarantees the bytes.
        let bytes = unsafe { bytes(data, length, "data")? };
        Model::from_bytes(bytes).map(Arc::new).map_err(|error| refused("the model in memory", &error))
    };
    // SAFETY: the caller guarantees the room.
    unsafe { give(model, read) }
}

/// Frees a model. Schedulers that have been made with it keep their own share. Freeing the null handle does nothing.
#[unsafe(no_mangle)]
pub extern "C" fn tn_model_free(model: tn_model) -> tn_result {
    guarded(|| if model.value == 0 { Ok(()) } else { handles::remove(model).map(drop) })
}
