//! Files kept between calls: the findings of each experiment, every trained model and, in the full mode, the runs of each
//! scheduler.
//!
//! The name of a file is a hash of everything that decides its content. Nothing is therefore computed twice, and
//! nothing stale is read. A file is written completely or not at all, so that readers and interrupted runs never see a
//! part of it.

use std::io::Write;
use std::path::{Path, PathBuf};

use temponet::{Model, Options, Tuning};
use temponet_infer::{Kernel, NetworkOptions, Precision};

use super::ReproduceError;

/// A folder of findings and models.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    /// Folder of models that the user has trained.
    models: Option<PathBuf>,
    /// Whether results are worked out anew; trained models never are.
    is_anew: bool,
}

impl Cache {
    /// Opens the cache in a folder, creating the folder if it does not exist.
    pub fn open(folder: &Path) -> Result<Cache, ReproduceError> {
        let cache = Cache { folder: folder.into(), models: None, is_anew: false };
        std::fs::create_dir_all(folder).map_err(|error| cache.problem(folder, &error))?;
        Ok(cache)
    }

    /// Returns `temponet` in the user's cache folder (`$XDG_CACHE_HOME` or `~/.cache`), or a folder in the current one
    /// if neither is known.
    pub fn default_folder() -> PathBuf {
        let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        match of("XDG_CACHE_HOME").or_else(|| of("HOME").map(|home| home.join(".cache"))) {
            Some(folder) => folder.join("temponet"),
            None => ".temponet-cache".into(),
        }
    }

    /// Adds a folder of models that take the place of the rivals' own.
    pub fn with_models(self, models: Option<PathBuf>) -> Cache {
        Cache { models, ..self }
    }

    /// Says whether results are worked out anew, and replaced.
    pub fn anew(self, is_anew: bool) -> Cache {
        Cache { is_anew, ..self }
    }

    /// Reads a part of an experiment's results; none if it does not exist or is worked out anew.
    pub fn result(&self, name: &str) -> Result<Option<Vec<u8>>, ReproduceError> {
        if self.is_anew { Ok(None) } else { self.read(name) }
    }

    /// Returns the folder of models that the user has trained, if there is one.
    pub fn models(&self) -> Option<&Path> {
        self.models.as_deref()
    }

    /// Returns the path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Reads a file; none if it does not exist.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ReproduceError> {
        match std::fs::read(self.path(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.problem(&self.path(name), &error)),
        }
    }

    /// Writes a file, completely or not at all.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), ReproduceError> {
        let path = self.path(name);
        self.replace(&path, content).map_err(|error| self.problem(&path, &error))
    }

    /// Writes a temporary file with an unpredictable name and renames it. The content reaches the disk before the file
    /// takes its name; otherwise a crash could leave an empty file under that name.
    fn replace(&self, path: &Path, content: &[u8]) -> std::io::Result<()> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".temponet-").suffix(".partial").rand_bytes(12);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(&self.folder)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        #[cfg(unix)]
        if let Ok(folder) = std::fs::File::open(&self.folder) {
            // Not every file system can sync a folder; the file itself is safe.
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// Removes a file if it exists.
    pub fn remove(&self, name: &str) {
        let _ = std::fs::remove_file(self.path(name));
    }

    fn problem(&self, path: &Path, error: &std::io::Error) -> ReproduceError {
        ReproduceError::Cache(path.display().to_string(), error.to_string())
    }
}

/// Hash of the code that decides the weights of a trained model; `build.rs` says which.
pub const TRAINING_CODE: &str = env!("TEMPONET_TRAINING_CODE");
/// Hash of the code that all findings depend on.
pub const CODE: &str = env!("TEMPONET_CODE");
/// Hashes of the experiments' own code, by module.
static EXPERIMENT_CODE: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// Returns the hash of the code of an experiment's module and of the modules that it uses.
pub fn experiment_code(module: &str) -> &'static str {
    EXPERIMENT_CODE.iter().find(|(name, _)| *name == module).map_or("", |(_, code)| *code)
}

/// Returns a hash of texts in order: FNV-1a over their bytes, with a zero byte after each text.
pub fn key(parts: &[&str]) -> String {
    hash(parts.iter().flat_map(|part| part.bytes().chain([0])))
}

/// Returns a hash of a model's file. It covers the metadata as well as the tensors: the same weights with other tokens,
/// another scale or another reserve for long slack are another scheduler.
pub fn model_key(model: &Model) -> Result<String, ReproduceError> {
    let bytes = model.to_bytes().map_err(|error| ReproduceError::Network(error.to_string()))?;
    Ok(hash(bytes.into_iter()))
}

/// Returns a text of the options of the learned scheduler that stays the same as long as they do. Latencies are
/// measured anew each time; they are no choice of the caller.
pub fn options_key(options: &Options) -> String {
    let Options { mapping, sparse, keep_attention, network, budget_ns, calibration: _, tuning } = options;
    let NetworkOptions { kernel, precision, rows } = network;
    let precision = match precision {
        Precision::F32 => "f32",
        Precision::Bf16 => "bf16",
        Precision::Int8 => "int8",
    };
    let tuning = match tuning {
        Tuning::Off => "off",
        Tuning::AtStart => "at start",
        Tuning::Online => "online",
    };
    serde_json::json!({
        "mapping": mapping, "sparse": sparse, "keep_attention": keep_attention, "kernel": kernel.map(Kernel::name), "precision": precision,
        "rows": rows, "budget_ns": budget_ns, "tuning": tuning,
    })
    .to_string()
}

/// FNV-1a with 64 bits.
fn hash(bytes: impl Iterator<Item = u8>) -> String {
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_experiment_has_a_hash_of_its_own_code() {
        let codes: Vec<&str> = crate::ALL.iter().map(|experiment| experiment_code(experiment.module)).collect();
        let distinct: std::collections::BTreeSet<&&str> = codes.iter().collect();
        assert!(codes.iter().all(|code| code.len() == 16) && distinct.len() == codes.len(), "{codes:?}");
    }

    #[test]
    fn keys_distinguish_texts_and_are_stable() {
        assert_eq!(key(&[]), "cbf29ce484222325", "the published offset");
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["a"]), key(&["a"]));
    }

    #[test]
    fn the_key_of_a_model_is_of_its_tokens_and_notes_too() {
        use temponet::stages::Tokenizer;
        let model = Model::random(Tokenizer::paper(), 1);
        let of = |model: &Model| model_key(model).unwrap();
        assert_eq!(
            of(&model),
            of(&Model::from_bytes(&model.to_bytes().unwrap()).unwrap()),
            "the file has the same key"
        );
        let mut reserve = model.clone();
        reserve.tokenizer.long_slack_reserve = 0.5;
        let mut noted = model.clone();
        noted.set_provenance("elsewhere".into());
        for other in [&reserve, &noted] {
            assert_eq!(other.weights.checksum(), model.weights.checksum(), "the tensors are the same");
            assert_ne!(of(other), of(&model));
        }
        assert_ne!(of(&Model::random(Tokenizer::paper(), 2)), of(&model), "other tensors");
    }

    #[test]
    fn a_file_is_replaced_and_removed_as_a_whole() {
        let folder = std::env::temp_dir().join(format!("temponet-cache-{}", std::process::id()));
        let cache = Cache::open(&folder).unwrap();
        assert_eq!(cache.read("x").unwrap(), None);
        cache.write("x", b"one").unwrap();
        cache.write("x", b"two").unwrap();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no temporary file is left");
        assert_eq!(cache.read("x").unwrap().as_deref(), Some(&b"two"[..]));
        cache.remove("x");
        assert_eq!(cache.read("x").unwrap(), None);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
