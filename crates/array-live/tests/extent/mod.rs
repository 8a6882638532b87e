//! How much is tried: a third in `make test`, all where `ASSAY_ALL` is set, as `make test-all` does.

pub(crate) fn tries_all() -> bool {
    std::env::var_os("ASSAY_ALL").is_some()
}

/// The number of cases that a property test tries: all, or a third of them.
pub(crate) fn cases(all: u32) -> u32 {
    if tries_all() { all } else { all.div_ceil(3) }
}
