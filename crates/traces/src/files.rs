//! Where the files of traces lie: on a disk, or wherever a program has them, such as behind a page in a browser.

use std::fs::File;
use std::io::{Read, Result, Seek};
use std::path::{Path, PathBuf};

/// What lies at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// An ordinary file with its size in bytes.
    File(u64),
    /// A folder.
    Folder,
    /// Anything else, such as a pipe.
    Other,
}

/// What a file holds.
pub trait Content: Read + Seek + Send {}

impl<C: Read + Seek + Send> Content for C {}

/// Files and folders by their paths.
pub trait Files {
    /// Says what lies at a path.
    fn about(&self, path: &Path) -> Result<About>;
    /// Returns the paths of what is in a folder, in any order. Links to folders are left out: they may lead in a circle.
    fn entries(&self, folder: &Path) -> Result<Vec<PathBuf>>;
    /// Opens a file.
    fn open(&self, path: &Path) -> Result<Box<dyn Content>>;

    /// Whether an ordinary file lies at a path.
    fn has_file(&self, path: &Path) -> bool {
        matches!(self.about(path), Ok(About::File(_)))
    }

    /// Whether a folder lies at a path.
    fn has_folder(&self, path: &Path) -> bool {
        matches!(self.about(path), Ok(About::Folder))
    }
}

/// The files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn about(&self, path: &Path) -> Result<About> {
        let about = path.metadata()?;
        Ok(match about.is_dir() {
            true => About::Folder,
            false if about.is_file() => About::File(about.len()),
            false => About::Other,
        })
    }

    fn entries(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let is_link = path.symlink_metadata().is_ok_and(|about| about.is_symlink());
            if !(is_link && path.is_dir()) {
                all.push(path);
            }
        }
        Ok(all)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn Content>> {
        Ok(Box::new(File::open(path)?))
    }
}
