//! Fingerprint of a system: 128 bits of its content, to recognize the system that a choice was made for.

use std::fmt::{self, Write};

use temponet_task::System;

/// Returns 32 hexadecimal digits that tell systems apart: tasks, cores, rule, speeds, servers, costs and goal. Two systems that differ in any of them have
/// different fingerprints, up to a chance of about 2⁻¹²⁸.
///
/// ```
/// use temponet::{Task, TaskSet, Time, tuning::fingerprint};
///
/// let tasks = vec![Task::periodic("control", Time::from_ms(10), Time::from_ms(4))];
/// let one = TaskSet::new("robot", tasks.clone(), 1).system();
/// let two = TaskSet::new("robot", tasks, 2).system();
/// assert_eq!(fingerprint(&one), fingerprint(&one));
/// assert_ne!(fingerprint(&one), fingerprint(&two));
/// ```
pub fn fingerprint(system: &System) -> String {
    // The debug form of a system has all its content, and numbers in it are exact.
    let mut hash = Fnv(OFFSET);
    let _ = write!(hash, "{system:?}");
    format!("{:032x}", hash.0)
}

/// FNV-1a with 128 bits (Fowler, Noll and Vo).
struct Fnv(u128);

const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(PRIME);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        let hash = |text: &str| {
            let mut hash = Fnv(OFFSET);
            let _ = hash.write_str(text);
            hash.0
        };
        assert_eq!(hash("a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(hash("foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }
}
