//! The same loop compiled for several instruction sets, chosen at run time.

use std::sync::OnceLock;

/// Instruction sets that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What every processor of the architecture has.
    Portable,
    /// 256-bit vectors, and instructions that count and find bits.
    Avx2,
    /// 512-bit vectors.
    Avx512,
}

/// The level in use: the best that the processor supports, or a lower one if `MANYBOOST_SIMD` asks
/// for it.
pub fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| {
        let wanted = match std::env::var("MANYBOOST_SIMD").as_deref() {
            Ok("portable") => Level::Portable,
            Ok("avx2") => Level::Avx2,
            _ => Level::Avx512,
        };
        wanted.min(detect())
    })
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let has_avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("popcnt");
    if has_avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
    {
        Level::Avx512
    } else if has_avx2 {
        Level::Avx2
    } else {
        Level::Portable
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Portable
}

/// Runs `kernel`, an ordinary loop, compiled for the widest registers in use. The compiler neither
/// reorders float additions nor fuses multiply-adds, so all levels give the same bits.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn widest<R>(kernel: impl FnOnce() -> R) -> R {
    match level() {
        // SAFETY: `level` is at most what the processor was detected to support.
        Level::Avx512 => unsafe { with_avx512(kernel) },
        // SAFETY: as above.
        Level::Avx2 => unsafe { with_avx2(kernel) },
        Level::Portable => kernel(),
    }
}

/// Runs `kernel` as it is: this architecture has one level.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn widest<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
fn with_avx2<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512bw,avx512vl,bmi1,bmi2,popcnt")]
fn with_avx512<R>(kernel: impl FnOnce() -> R) -> R {
    kernel()
}
