//! Encoding of systems and task sets as bytes, to key whatever is stored for them.
//!
//! The encoding is explicit: every field in a fixed order, numbers as little-endian bytes, floats by their bits, lists
//! and texts behind their lengths, alternatives behind a tag. It does not depend on the version of the compiler or on
//! how types print, and two different systems never have the same bytes. It is no file format: nothing reads it back. A
//! change of what is encoded, or of what it means, takes another [`VERSION`]; what was stored under the old one is then
//! not found.

mod fields;

use crate::{System, TaskSet};
use alloc::{format, string::String, vec::Vec};
use fields::Encode;

/// Version of the encoding, its first byte.
pub const VERSION: u8 = 1;

impl System {
    /// Appends the encoding of the system to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        VERSION.put(out);
        self.put(out);
    }

    /// Returns 32 hexadecimal digits that tell systems apart: FNV-1a with 128 bits (Fowler, Noll and Vo) of the
    /// encoding. Two systems that differ in anything have different fingerprints, up to a chance of about 2⁻¹²⁸.
    ///
    /// ```
    /// use temponet_task::{System, Task, Time};
    ///
    /// let tasks = vec![Task::periodic("control", Time::from_ms(10), Time::from_ms(4))];
    /// let (one, two) = (System::new(tasks.clone(), 1), System::new(tasks, 2));
    /// assert_eq!(one.fingerprint(), one.fingerprint());
    /// assert_ne!(one.fingerprint(), two.fingerprint());
    /// ```
    pub fn fingerprint(&self) -> String {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        checksum(&bytes)
    }
}

impl TaskSet {
    /// Appends the encoding of the set, name and description included, to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let TaskSet { name, description, time_unit, modes, system } = self;
        VERSION.put(out);
        name.put(out);
        description.put(out);
        time_unit.put(out);
        modes.put(out);
        system.put(out);
    }

    /// Returns 32 hexadecimal digits that tell sets apart, as [`System::fingerprint`] does for systems.
    pub fn fingerprint(&self) -> String {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        checksum(&bytes)
    }
}

/// Returns 32 hexadecimal digits that tell contents apart: FNV-1a with 128 bits (Fowler, Noll and Vo).
pub fn checksum(bytes: &[u8]) -> String {
    format!("{:032x}", fnv(bytes))
}

fn fnv(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests;
