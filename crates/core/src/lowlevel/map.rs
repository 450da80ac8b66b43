//! A scratch file that no other process can open, written once and then read as memory.

use std::fs::{File, OpenOptions};
use std::io::{Result, Seek, SeekFrom, Write};
use std::path::Path;

/// A new file that belongs to this process alone, open for appending.
///
/// On Unix the file is created with mode 0600 at a path that must be free, and its name is removed
/// at once. On Windows it cannot be shared and disappears when it is closed. Elsewhere it keeps
/// its name, and the folder must be private.
#[derive(Debug)]
pub struct PrivateFile {
    file: File,
    len: usize,
}

impl PrivateFile {
    /// Creates the file at `path`, where no file may exist.
    pub fn create(path: &Path) -> Result<PrivateFile> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        make_private(&mut options);
        let file = options.open(path)?;
        if cfg!(unix) {
            std::fs::remove_file(path)?;
        }
        Ok(PrivateFile { file, len: 0 })
    }

    /// Number of bytes written.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        // A write that failed may have left some bytes behind.
        self.file.seek(SeekFrom::Start(self.len as u64))?;
        self.file.write_all(bytes)?;
        self.len += bytes.len();
        Ok(())
    }

    /// The bytes as memory, which can only be read.
    pub fn map(self) -> Result<PrivateMap> {
        if self.is_empty() {
            return Ok(PrivateMap { map: None, _file: self.file });
        }
        // SAFETY: the bytes must not change while they are mapped. `create` made the file, this
        // value holds the only handle, and `PrivateMap` neither writes to it nor hands it out. Only
        // processes of the same user could have opened the file, before its name was removed, and
        // they may change the memory of this process anyway.
        let map = unsafe { memmap2::MmapOptions::new().len(self.len).map(&self.file) }?;
        Ok(PrivateMap { map: Some(map), _file: self.file })
    }
}

#[cfg(unix)]
fn make_private(options: &mut OpenOptions) {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
}

#[cfg(windows)]
fn make_private(options: &mut OpenOptions) {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
    options.share_mode(0).custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
}

#[cfg(not(any(unix, windows)))]
fn make_private(_: &mut OpenOptions) {}

/// The bytes of a [`PrivateFile`], mapped into memory.
#[derive(Debug)]
pub struct PrivateMap {
    /// `None` for an empty file, which some systems cannot map.
    map: Option<memmap2::Mmap>,
    /// Kept open: on Windows the file is private as long as it is open.
    _file: File,
}

impl std::ops::Deref for PrivateMap {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.map.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("manyboost-map-{name}-{}", std::process::id()))
    }

    #[test]
    fn what_was_written_is_mapped() {
        let mut file = PrivateFile::create(&path("written")).unwrap();
        file.write(b"many").unwrap();
        file.write(b"boost").unwrap();
        assert_eq!(file.len(), 9);
        assert_eq!(*file.map().unwrap(), *b"manyboost");
        assert!(PrivateFile::create(&path("empty")).unwrap().map().unwrap().is_empty());
    }

    #[test]
    fn a_file_that_exists_is_left_alone() {
        let path = path("exists");
        std::fs::write(&path, b"mine").unwrap();
        assert!(PrivateFile::create(&path).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        std::fs::remove_file(&path).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn nobody_can_open_the_file() {
        use std::os::unix::fs::MetadataExt;
        let path = path("private");
        let file = PrivateFile::create(&path).unwrap();
        assert!(!path.exists());
        let metadata = file.file.metadata().unwrap();
        assert_eq!((metadata.nlink(), metadata.mode() & 0o077), (0, 0));
    }
}
