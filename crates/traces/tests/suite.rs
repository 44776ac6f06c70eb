//! All integration tests of the crate in one program.

mod bad_input;
mod chrome;
mod known_set;
mod mutations;
mod ros;
mod truth;
mod write_ctf;
mod write_text;

use std::path::{Path, PathBuf};

use temponet_traces::{Found, Import, Options, TraceError, import};

/// A fresh folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("temponet-traces-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(files: &[PathBuf], options: &Options) -> Result<Import, TraceError> {
    import(files, options, None, &mut |_| {})
}

fn found(path: &Path) -> Import {
    read(&[path.into()], &Options::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn task<'a>(import: &'a Import, name: &str) -> &'a Found {
    let find = import.tasks.iter().find(|task| task.name == name);
    find.unwrap_or_else(|| panic!("no {name:?}: {:?}", import.tasks.iter().map(|task| &task.name).collect::<Vec<_>>()))
}

/// A small generator of numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}
