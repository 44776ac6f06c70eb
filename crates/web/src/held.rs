//! Files that a page holds. The module reads them in pieces, through a function of the page, so that a trace may be
//! larger than its memory.

use std::collections::BTreeSet;
use std::io::{BufReader, Error, ErrorKind, Read, Result, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use temponet_traces::{About, Content, Files};

/// Reads a piece of a file, given by its index in the request, from an offset on; returns how many bytes there were.
pub type ReadPiece = fn(file: usize, offset: u64, to: &mut [u8]) -> Result<usize>;

/// Size of a piece, in bytes.
const PIECE: usize = 1 << 20;

/// Files with their paths below what was dropped, and their sizes.
pub struct Held<'a> {
    /// Paths and sizes in bytes.
    pub files: &'a [(PathBuf, u64)],
    /// Reads pieces of them.
    pub read: ReadPiece,
}

impl Held<'_> {
    /// Size of a file in bytes; zero if there is none.
    pub fn length(&self, path: &Path) -> u64 {
        self.find(path).map_or(0, |(_, bytes)| bytes)
    }

    fn find(&self, path: &Path) -> Option<(usize, u64)> {
        self.files.iter().position(|(known, _)| known == path).map(|at| (at, self.files[at].1))
    }
}

fn is_missing() -> Error {
    Error::new(ErrorKind::NotFound, "is not there")
}

impl Files for Held<'_> {
    fn about(&self, path: &Path) -> Result<About> {
        match self.find(path) {
            Some((_, bytes)) => Ok(About::File(bytes)),
            None if self.files.iter().any(|(known, _)| known.starts_with(path)) => Ok(About::Folder),
            None => Err(is_missing()),
        }
    }

    fn entries(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let below = self.files.iter().filter_map(|(path, _)| path.strip_prefix(folder).ok()?.components().next());
        let all: BTreeSet<PathBuf> = below.map(|first| folder.join(first)).collect();
        Ok(all.into_iter().collect())
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Content>> {
        let (file, length) = self.find(path).ok_or_else(is_missing)?;
        Ok(Box::new(BufReader::with_capacity(PIECE, Pieces { file, at: 0, length, read: self.read })))
    }
}

/// A file that is read in pieces.
struct Pieces {
    file: usize,
    at: u64,
    length: u64,
    read: ReadPiece,
}

impl Read for Pieces {
    fn read(&mut self, to: &mut [u8]) -> Result<usize> {
        let most = self.length.saturating_sub(self.at).min(to.len() as u64) as usize;
        if most == 0 {
            return Ok(0);
        }
        let count = (self.read)(self.file, self.at, &mut to[..most])?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Pieces {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let place = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = place.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "a place before the beginning"))?;
        Ok(self.at)
    }
}
