//! Names the sources that the extension is built from, so that figures can say which build they are of.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

const SOURCES: [&str; 4] = ["src", "../core/src", "../core/Cargo.toml", "../../Cargo.lock"];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
        collect(&here.join(source), &mut files)?;
    }
    files.sort();
    // FNV-1a: a name for a build, not a protection.
    let mut digest = 0xcbf2_9ce4_8422_2325u64;
    for file in files {
        for byte in fs::read(file)?.into_iter().filter(|&byte| byte != b'\r') {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    println!("cargo::rustc-env=MANYBOOST_SOURCES={digest:016x}");
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
    } else if path.is_file() {
        files.push(path.to_path_buf());
    }
    Ok(())
}
