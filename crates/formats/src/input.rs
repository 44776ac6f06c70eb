//! The bytes of a file that a user names, whatever it is: too large a file, an endless device and a silent pipe are errors, not a program that
//! eats memory or hangs.

use std::fs::File;
use std::io::{Error, Read, Result};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Bytes of an ordinary file.
const MOST_BYTES: u64 = 1 << 30;
/// Bytes of a pipe or a device, which does not say beforehand how much will come.
const MOST_STREAMED: u64 = 64 << 20;
/// How long a pipe may be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads a whole file of at most 1 GiB; pipes and devices of at most 64 MiB.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    let metadata = path.metadata()?;
    if metadata.is_dir() {
        return Err(Error::other("is a folder, not a file"));
    }
    let most = if metadata.is_file() { MOST_BYTES } else { MOST_STREAMED };
    if metadata.len() > most {
        return Err(too_large(most));
    }
    if is_pipe(&metadata) {
        return read_pipe(path, most);
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

fn too_large(most: u64) -> Error {
    Error::other(format!("is too large: more than {} MiB", most >> 20))
}

/// Whether opening it waits for somebody at the other end.
pub fn is_pipe(metadata: &std::fs::Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::FileTypeExt::is_fifo(&metadata.file_type());
    #[cfg(not(unix))]
    return !metadata.is_file() && !metadata.is_dir();
}

/// Reads on a thread of its own, since opening a pipe nobody writes to never returns.
fn read_pipe(path: &Path, most: u64) -> Result<Vec<u8>> {
    let (sender, receiver) = sync_channel::<Result<Vec<u8>>>(1);
    let path = path.to_path_buf();
    std::thread::spawn(move || {
        let read = || -> Result<()> {
            let mut file = File::open(path)?;
            loop {
                let mut part = vec![0; 1 << 16];
                let length = file.read(&mut part)?;
                part.truncate(length);
                // A reader that has had enough is gone.
                if length == 0 || sender.send(Ok(part)).is_err() {
                    return Ok(());
                }
            }
        };
        if let Err(error) = read() {
            let _ = sender.send(Err(error));
        }
    });
    let mut bytes = Vec::new();
    loop {
        match receiver.recv_timeout(PATIENCE) {
            Ok(part) => bytes.extend(part?),
            Err(RecvTimeoutError::Disconnected) => return Ok(bytes),
            Err(RecvTimeoutError::Timeout) => {
                return Err(Error::other(format!("nothing came through the pipe for {} s", PATIENCE.as_secs())));
            }
        }
        if bytes.len() as u64 > most {
            return Err(too_large(most));
        }
    }
}
