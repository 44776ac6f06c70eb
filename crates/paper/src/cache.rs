//! What is kept between calls: the findings of each experiment, and every model that was trained. A name is a hash of all that decides the
//! content, so that nothing is computed twice and nothing stale is read.

use std::path::{Path, PathBuf};

use super::ReproduceError;

/// A folder with findings and models.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// In this folder, which is made if it is not there.
    pub fn open(folder: &Path) -> Result<Cache, ReproduceError> {
        let cache = Cache { folder: folder.into() };
        std::fs::create_dir_all(folder).map_err(|error| cache.problem(folder, &error))?;
        Ok(cache)
    }

    /// The user's own folder for such things, or one in the current folder where there is none.
    pub fn default_folder() -> PathBuf {
        let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        match of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache"))) {
            Some(folder) => folder.join("temponet"),
            None => ".temponet-cache".into(),
        }
    }

    /// Where the file of a name is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A file's content; none if it is not there.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ReproduceError> {
        match std::fs::read(self.path(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.problem(&self.path(name), &error)),
        }
    }

    /// Writes a whole file, completely or not at all.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), ReproduceError> {
        let (path, partial) = (self.path(name), self.path(&format!(".{name}.{}.partial", std::process::id())));
        let written = std::fs::write(&partial, content).and_then(|()| std::fs::rename(&partial, &path));
        written.map_err(|error| {
            let _ = std::fs::remove_file(&partial);
            self.problem(&path, &error)
        })
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &str) {
        let _ = std::fs::remove_file(self.path(name));
    }

    fn problem(&self, path: &Path, error: &std::io::Error) -> ReproduceError {
        ReproduceError::Cache(path.display().to_string(), error.to_string())
    }
}

/// A hash of some texts, in order (FNV-1a over their bytes, a zero byte after each).
pub fn key(parts: &[&str]) -> String {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_tell_texts_apart_and_stay() {
        assert_eq!(key(&[]), "cbf29ce484222325", "the published offset");
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["a"]), key(&["a"]));
    }

    #[test]
    fn files_are_there_or_not() {
        let folder = std::env::temp_dir().join(format!("temponet-cache-{}", std::process::id()));
        let cache = Cache::open(&folder).unwrap();
        assert_eq!(cache.read("x").unwrap(), None);
        cache.write("x", b"one").unwrap();
        cache.write("x", b"two").unwrap();
        assert_eq!(cache.read("x").unwrap().as_deref(), Some(&b"two"[..]));
        cache.remove("x");
        assert_eq!(cache.read("x").unwrap(), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
