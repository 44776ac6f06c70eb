//! Lines of a file of any length, through one buffer.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::TraceError;

/// Size of a read, in bytes.
const CHUNK: usize = 1 << 18;
/// Longest line, in bytes.
const LONGEST: usize = 1 << 20;

/// Reader of lines. A line is a slice of its buffer, so nothing is allocated for it.
pub(crate) struct Lines {
    pub file: PathBuf,
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// Part of the buffer that is filled and not yet given out.
    from: usize,
    to: usize,
    is_over: bool,
    /// Number of the line that was given out last, from 1.
    pub number: u64,
    /// Bytes given out.
    pub offset: u64,
    /// Whether the last line had no line break at its end.
    pub is_cut: bool,
}

impl Lines {
    pub fn new(file: &Path, input: Box<dyn Read + Send>) -> Lines {
        Lines {
            file: file.into(),
            input,
            buffer: vec![0; 2 * CHUNK],
            from: 0,
            to: 0,
            is_over: false,
            number: 0,
            offset: 0,
            is_cut: false,
        }
    }

    /// Returns the next line without its line break.
    pub fn next(&mut self) -> Result<Option<&[u8]>, TraceError> {
        let mut searched = self.from;
        loop {
            if let Some(length) = memchr::memchr(b'\n', &self.buffer[searched..self.to]) {
                let (start, end) = (self.from, searched + length);
                self.from = end + 1;
                self.number += 1;
                self.offset += (end + 1 - start) as u64;
                let line = &self.buffer[start..end];
                return Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)));
            }
            if self.is_over {
                let (start, end) = (self.from, self.to);
                if start == end {
                    return Ok(None);
                }
                self.from = end;
                self.number += 1;
                self.offset += (end - start) as u64;
                self.is_cut = true;
                return Ok(Some(&self.buffer[start..end]));
            }
            searched = self.to - self.from;
            self.fill()?;
        }
    }

    /// Reads more behind what is there, which moves to the beginning of the buffer.
    fn fill(&mut self) -> Result<(), TraceError> {
        self.buffer.copy_within(self.from..self.to, 0);
        self.to -= self.from;
        self.from = 0;
        if self.to >= LONGEST {
            let long = format!("is longer than {LONGEST} bytes: this is no text of a trace");
            return Err(TraceError::line(&self.file, self.number + 1, long));
        }
        if self.buffer.len() < self.to + CHUNK {
            self.buffer.resize(self.to + CHUNK, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.to..]) {
                Ok(0) => self.is_over = true,
                Ok(count) => self.to += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(TraceError::whole(&self.file, error.to_string())),
            }
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_any_length_come_out_whole() {
        let long = "x".repeat(3 * CHUNK);
        let text = format!("a\r\n\n{long}\nend");
        let mut lines = Lines::new(Path::new("t"), Box::new(std::io::Cursor::new(text.clone().into_bytes())));
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(String::from_utf8(line.to_vec()).unwrap());
        }
        assert_eq!(all, ["a", "", &long, "end"]);
        assert_eq!((lines.number, lines.offset, lines.is_cut), (4, text.len() as u64, true));
        let endless = Box::new(std::io::repeat(b'x'));
        assert!(Lines::new(Path::new("t"), endless).next().unwrap_err().to_string().starts_with("t:1: is longer"));
    }
}
