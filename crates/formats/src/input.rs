//! Reading of a file that a user names, whatever kind it is. A file that is too large, an endless device and a silent
//! pipe are errors: the program must neither exhaust memory nor hang.

use std::fs::File;
use std::io::{Error, Read, Result};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Largest size of an ordinary file, in bytes.
const MOST_BYTES: u64 = 1 << 30;
/// Largest number of bytes from a pipe or device, whose size is not known beforehand.
const MOST_STREAMED: u64 = 64 << 20;
/// Longest time for which a pipe may be silent.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads a whole file of at most 1 GiB, or at most 64 MiB from a pipe or device.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    let metadata = path.metadata()?;
    if metadata.is_dir() {
        return Err(Error::other("is a folder, not a file"));
    }
    let most = if metadata.is_file() { MOST_BYTES } else { MOST_STREAMED };
    if is_pipe(&metadata) {
        return read_pipe(path, most);
    }
    read_limited(metadata.len(), most, || File::open(path))
}

/// Reads what an ordinary file of `length` bytes holds: at most 1 GiB.
pub(crate) fn read_ordinary<R: Read>(length: u64, open: impl FnOnce() -> Result<R>) -> Result<Vec<u8>> {
    read_limited(length, MOST_BYTES, open)
}

fn read_limited<R: Read>(length: u64, most: u64, open: impl FnOnce() -> Result<R>) -> Result<Vec<u8>> {
    if length > most {
        return Err(too_large(most));
    }
    let mut bytes = Vec::new();
    open()?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

fn too_large(most: u64) -> Error {
    Error::other(format!("is too large: more than {} MiB", most >> 20))
}

/// Returns whether the file is a pipe, so that opening it waits for the other end.
pub fn is_pipe(metadata: &std::fs::Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::FileTypeExt::is_fifo(&metadata.file_type());
    #[cfg(not(unix))]
    return !metadata.is_file() && !metadata.is_dir();
}

/// Reads a pipe on a separate thread, because opening a pipe without a writer never returns.
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
                // Sending fails after the receiver has given up.
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
