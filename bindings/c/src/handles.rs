//! Handles: numbers that name what the library has made.
//!
//! ```text
//!  63            32 31      24 23             0
//! ┌────────────────┬──────────┬────────────────┐
//! │  generation    │   type   │     place      │
//! └────────────────┴──────────┴────────────────┘
//! ```
//!
//! The table holds one object per place. Each object of a place has a generation of its own, from 1 on, so the handle of
//! an object that has been freed is never that of another one, and no handle is zero: that is the null handle. A place
//! whose generations are used up stays empty.
//!
//! A lookup holds the lock of the table for a few instructions and takes a share of the object. So an object that one
//! thread frees while another one uses it lives until that call ends.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::boundary::Failure;
use crate::model::LoadedModel;
use crate::ready::Loop;
use crate::result::tn_result;
use crate::set::LoadedSet;

/// A task set. It never changes, and any number of threads may use it at the same time.
///
/// Who was given a handle frees it with `tn_set_free`, once. Copies of a handle name the same object.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tn_set {
    /// 0 is the null handle.
    pub value: u64,
}

/// A model of the learned scheduler. It never changes, and any number of threads may use it at the same time.
///
/// Freed with `tn_model_free`.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tn_model {
    /// 0 is the null handle.
    pub value: u64,
}

/// The ready jobs of a running system, with their scheduler. One call at a time: a second one, from another thread,
/// returns `TN_RESULT_BUSY` and changes nothing. Between calls it may move from thread to thread.
///
/// Freed with `tn_ready_free`.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tn_ready {
    /// 0 is the null handle.
    pub value: u64,
}

/// A text of the library, such as a report. It never changes, and any number of threads may use it at the same time.
///
/// Freed with `tn_text_free`.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct tn_text {
    /// 0 is the null handle.
    pub value: u64,
}

/// Object behind a handle.
#[derive(Clone)]
enum Object {
    Set(Arc<LoadedSet>),
    Model(Arc<LoadedModel>),
    Ready(Arc<Mutex<Loop>>),
    Text(Arc<str>),
}

/// What a handle can name.
pub trait Named: Copy {
    /// Type of the object that a caller gets.
    type Shared;
    /// Number of the type in handles.
    const TYPE: u8;
    const NAME: &'static str;

    fn value(self) -> u64;
    fn of(value: u64) -> Self;
    #[allow(private_interfaces, reason = "only this module has objects")]
    fn wrap(object: Self::Shared) -> Object;
    #[allow(private_interfaces, reason = "only this module has objects")]
    fn unwrap(object: &Object) -> Option<Self::Shared>;
}

macro_rules! named {
    ($($handle:ident, $variant:ident, $shared:ty, $number:literal, $name:literal;)*) => {
        $(impl Named for $handle {
            type Shared = $shared;
            const TYPE: u8 = $number;
            const NAME: &'static str = $name;

            fn value(self) -> u64 {
                self.value
            }

            fn of(value: u64) -> Self {
                $handle { value }
            }

            #[allow(private_interfaces, reason = "only this module has objects")]
            fn wrap(object: $shared) -> Object {
                Object::$variant(object)
            }

            #[allow(private_interfaces, reason = "only this module has objects")]
            fn unwrap(object: &Object) -> Option<$shared> {
                match object {
                    Object::$variant(shared) => Some(shared.clone()),
                    _ => None,
                }
            }
        })*

        /// Name of the type with this number in handles.
        fn name_of(number: u8) -> Option<&'static str> {
            [$(($number, $name)),*].into_iter().find(|(own, _)| *own == number).map(|(_, name)| name)
        }
    };
}

named! {
    tn_set, Set, Arc<LoadedSet>, 1, "task set";
    tn_model, Model, Arc<LoadedModel>, 2, "model";
    tn_ready, Ready, Arc<Mutex<Loop>>, 3, "ready-jobs object";
    tn_text, Text, Arc<str>, 4, "text";
}

struct Slot {
    /// Generation of the object, or of the next one if there is none.
    generation: u32,
    object: Option<Object>,
}

struct Table {
    slots: Vec<Slot>,
    /// Places without an object that have a generation left.
    free: Vec<u32>,
}

/// Largest number of objects at the same time.
const MOST: usize = 1 << 24;

static TABLE: RwLock<Table> = RwLock::new(Table { slots: Vec::new(), free: Vec::new() });

fn parts(value: u64) -> (u32, u8, usize) {
    ((value >> 32) as u32, (value >> 24) as u8, (value & 0xff_ffff) as usize)
}

/// Puts an object, made from its own handle, into the table.
pub fn insert<H: Named>(make: impl FnOnce(u64) -> H::Shared) -> Result<H, Failure> {
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let place = match table.free.pop() {
        Some(place) => place as usize,
        None if table.slots.len() < MOST => {
            table.slots.push(Slot { generation: 1, object: None });
            table.slots.len() - 1
        }
        None => return Err(Failure::new(tn_result::TooLarge, format!("there are {MOST} objects already"))),
    };
    let value = u64::from(table.slots[place].generation) << 32 | u64::from(H::TYPE) << 24 | place as u64;
    table.slots[place].object = Some(H::wrap(make(value)));
    Ok(H::of(value))
}

/// Returns a share of the object of a handle.
pub fn find<H: Named>(handle: H) -> Result<H::Shared, Failure> {
    let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
    let (generation, kind, place) = parts(handle.value());
    let slot = table.slots.get(place).filter(|slot| slot.generation == generation);
    let object = slot.and_then(|slot| slot.object.as_ref());
    object.filter(|_| kind == H::TYPE).and_then(H::unwrap).ok_or_else(|| refused::<H>(handle.value()))
}

/// Takes the object of a handle out of the table.
pub fn remove<H: Named>(handle: H) -> Result<H::Shared, Failure> {
    let shared = find(handle)?;
    let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
    let (generation, _, place) = parts(handle.value());
    let slot = &mut table.slots[place];
    // Another thread may have been faster.
    let object = if slot.generation == generation { slot.object.take() } else { None };
    if object.is_none() {
        return Err(refused::<H>(handle.value()));
    }
    if let Some(next) = slot.generation.checked_add(1) {
        slot.generation = next;
        table.free.push(place as u32);
    }
    drop(table);
    Ok(shared)
}

/// Error about a handle that names no object of its type.
fn refused<H: Named>(value: u64) -> Failure {
    let (generation, kind, _) = parts(value);
    match (value, name_of(kind)) {
        (0, _) => Failure::new(tn_result::NullHandle, format!("the handle of a {} is null", H::NAME)),
        (_, Some(other)) if kind != H::TYPE && generation > 0 => {
            Failure::new(tn_result::WrongHandle, format!("the handle of a {} is that of a {other}", H::NAME))
        }
        _ => Failure::new(
            tn_result::StaleHandle,
            format!("the {} has been freed, or its handle was never given out", H::NAME),
        ),
    }
}
