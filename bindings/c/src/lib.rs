//! The C interface of TempoNet: task sets, models, and the loop of [`temponet::ReadyJobs`] with any scheduler.
//!
//! `include/temponet.h` is the interface, generated from this crate by cbindgen; `include/temponet.hpp` wraps it for
//! C++. `docs/c.md` describes both with an example.
//!
//! Four rules hold everywhere:
//! - **Handles, not pointers.** What the library makes is named by a number ([`handles`]), which is looked up in a
//!   table. A null, stale or foreign handle is therefore an error code, never an access to freed memory.
//! - **The caller's memory.** The library writes into buffers of the caller and keeps none of its pointers after a
//!   call. The only pointers that it returns are to constant texts.
//! - **No panic leaves the library** ([`boundary`]). It becomes an error code, and the object that it left in the
//!   middle of something can only be freed.
//! - **A busy object is an error.** Any thread may use any handle; a call on an object that another thread is using
//!   changes nothing and says so.

mod boundary;
mod handles;
mod input;
mod job;
mod loading;
mod model;
mod ready;
mod ready_calls;
mod result;
mod set;
mod text;
mod version;

pub use boundary::tn_last_error;
pub use handles::{tn_model, tn_ready, tn_set, tn_text};
pub use job::{tn_core, tn_decision, tn_job, tn_job_state, tn_release, tn_stopped};
pub use loading::{tn_format, tn_set_built_in, tn_set_load, tn_set_parse};
pub use model::{tn_model_built_in, tn_model_free, tn_model_from_bytes, tn_model_load};
pub use ready::{tn_ready_free, tn_ready_new, tn_ready_start};
pub use ready_calls::*;
pub use result::{tn_result, tn_result_text};
pub use set::{
    tn_set_analysis, tn_set_core_count, tn_set_find_task, tn_set_free, tn_set_guarantee, tn_set_notes, tn_set_task,
    tn_set_task_count, tn_set_task_name, tn_set_write, tn_task,
};
pub use text::{tn_text_copy, tn_text_free};
pub use version::{tn_kernel, tn_version};
