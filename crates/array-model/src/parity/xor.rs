//! Exclusive or over whole slices, in loops that the compiler turns into vector instructions.

/// Bytes of a result that stay in the first-level cache while all sources are added to it.
pub(super) const TILE: usize = 4096;

/// The sum of all sources. A source of length zero is a lost chunk and counts as zeros; the others have the length of
/// `sum`.
pub(super) fn sum(sum: &mut [u8], sources: &[&[u8]]) {
    sum_from(sum, sources.iter().copied());
}

/// [`sum`] of sources that are made as they are asked for.
pub(super) fn sum_from<'a>(sum: &mut [u8], sources: impl Iterator<Item = &'a [u8]> + Clone) {
    for (index, sum) in sum.chunks_mut(TILE).enumerate() {
        let tile = index * TILE..index * TILE + sum.len();
        let mut sources = sources.clone().filter(|source| !source.is_empty()).map(|source| &source[tile.clone()]);
        match (sources.next(), sources.next()) {
            (None, _) => sum.fill(0),
            (Some(first), None) => sum.copy_from_slice(first),
            (Some(first), Some(second)) => set(sum, first, second),
        }
        while let Some(first) = sources.next() {
            match (sources.next(), sources.next(), sources.next()) {
                (Some(second), Some(third), Some(fourth)) => add_four(sum, [first, second, third, fourth]),
                (second, third, _) => {
                    for source in [Some(first), second, third].into_iter().flatten() {
                        add(sum, source);
                    }
                }
            }
        }
    }
}

/// `sum ^= source`.
pub(super) fn add(sum: &mut [u8], source: &[u8]) {
    for (sum, source) in sum.iter_mut().zip(source) {
        *sum ^= source;
    }
}

/// `sum ^= old ^ new`: the effect of a write.
pub(super) fn add_change(sum: &mut [u8], old: &[u8], new: &[u8]) {
    for ((sum, old), new) in sum.iter_mut().zip(old).zip(new) {
        *sum ^= old ^ new;
    }
}

fn set(sum: &mut [u8], first: &[u8], second: &[u8]) {
    for ((sum, first), second) in sum.iter_mut().zip(first).zip(second) {
        *sum = first ^ second;
    }
}

/// Four sources at a time: the sum is loaded and stored once for all of them.
fn add_four(sum: &mut [u8], [a, b, c, d]: [&[u8]; 4]) {
    for ((((sum, a), b), c), d) in sum.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        *sum ^= a ^ b ^ c ^ d;
    }
}
