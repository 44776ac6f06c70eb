//! TensorBoard event files: figures over time, as protocol-buffer records with checksums.

/// Content of an event file. TensorBoard expects a file name that begins with `events.out.tfevents.`.
#[derive(Clone, Debug)]
pub struct EventFile {
    bytes: Vec<u8>,
}

impl Default for EventFile {
    fn default() -> Self {
        let mut events = EventFile { bytes: Vec::new() };
        // Field 3 of the first event names the format.
        events.record(&[double(1, 0.0), text(3, b"brain.Event:2")].concat());
        events
    }
}

impl EventFile {
    /// Adds a figure with its name, its step and its time in seconds.
    pub fn add(&mut self, name: &str, step: u64, seconds: f64, value: f32) {
        let value = [&[(2 << 3) | 5][..], &value.to_le_bytes()[..]].concat();
        let entry = [text(1, name.as_bytes()), value].concat();
        let summary = text(1, &entry);
        self.record(&[double(1, seconds), whole(2, step), text(5, &summary)].concat());
    }

    /// Returns the content of the file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn record(&mut self, content: &[u8]) {
        let length = (content.len() as u64).to_le_bytes();
        self.bytes.extend_from_slice(&length);
        self.bytes.extend_from_slice(&masked(&length).to_le_bytes());
        self.bytes.extend_from_slice(content);
        self.bytes.extend_from_slice(&masked(content).to_le_bytes());
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn text(field: u8, content: &[u8]) -> Vec<u8> {
    [&[(field << 3) | 2][..], &varint(content.len() as u64), content].concat()
}

fn whole(field: u8, value: u64) -> Vec<u8> {
    [&[field << 3][..], &varint(value)].concat()
}

fn double(field: u8, value: f64) -> Vec<u8> {
    [&[(field << 3) | 1][..], &value.to_le_bytes()].concat()
}

/// Returns the checksum of a record: CRC-32C, rotated and offset as the format demands.
fn masked(bytes: &[u8]) -> u32 {
    let crc = crc32c::crc32c(bytes);
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_what_tensorboard_reads() {
        // The first record of every event file of a version-2 writer at time 0, as TensorFlow itself writes it.
        let events = EventFile::default();
        assert_eq!(&events.bytes()[..8], &24u64.to_le_bytes());
        assert_eq!(masked(&24u64.to_le_bytes()), u32::from_le_bytes([0xa3, 0x7f, 0x4b, 0x22]));
        let mut more = events.clone();
        more.add("score", 300, 1.5, 0.25);
        let record = &more.bytes()[events.bytes().len()..];
        let content = &record[12..record.len() - 4];
        let mut expected = vec![9];
        expected.extend(1.5f64.to_le_bytes());
        expected.extend([0x10, 0xac, 0x02, 0x2a, 14, 0x0a, 12, 0x0a, 5]);
        expected.extend(b"score");
        expected.push(0x15);
        expected.extend(0.25f32.to_le_bytes());
        assert_eq!(content, expected);
    }
}
