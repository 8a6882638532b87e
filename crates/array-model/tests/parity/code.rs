//! Rows of every width: encode, write, lose, rebuild.

use std::collections::BTreeSet;

use assay_array_model::{ArrayError, Code, RaidPolicy};
use proptest::prelude::*;

use crate::row::{Row, Shape, Write, exclusive, shared};

/// Every width up to 24 disks; DP with its three primes, and with 7, each also shortened.
fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    let mut add = |policy, prime, columns: std::ops::RangeInclusive<u32>, chunk_bytes| {
        shapes.extend(columns.map(|columns| Shape { policy, prime, columns, chunk_bytes }));
    };
    add(RaidPolicy::Raid5, 0, 2..=23, 512);
    add(RaidPolicy::Raid6, 0, 2..=22, 512);
    add(RaidPolicy::Dp, 0, 1..=22, 512);
    add(RaidPolicy::Dp, 5, 1..=4, 4 * 53);
    add(RaidPolicy::Dp, 7, 1..=6, 6 * 37);
    add(RaidPolicy::Dp, 17, 1..=16, 16 * 11);
    add(RaidPolicy::Dp, 257, 1..=4, 256);
    shapes
}

/// A shape with chunks longer than what is worked on at a time and no multiple of a vector.
fn any_shape() -> impl Strategy<Value = Shape> {
    let single = (2..=23_u32, 1..9000_u64).prop_map(|(columns, bytes)| (RaidPolicy::Raid5, 0, columns, bytes));
    let double = (2..=22_u32, 1..9000_u64).prop_map(|(columns, bytes)| (RaidPolicy::Raid6, 0, columns, bytes));
    let diagonal = (prop::sample::select(vec![(5_u32, 4500_u64), (7, 1500), (17, 700), (257, 40)]))
        .prop_flat_map(|(prime, longest)| (Just(prime), 1..prime.min(20), 1..longest))
        .prop_map(|(prime, columns, row)| (RaidPolicy::Dp, prime, columns, row * u64::from(prime - 1)));
    prop_oneof![single, double, diagonal].prop_map(|(policy, prime, columns, chunk_bytes)| Shape {
        policy,
        prime,
        columns,
        chunk_bytes,
    })
}

fn any_write(shape: Shape) -> impl Strategy<Value = Write> {
    let columns = prop::collection::btree_set(0..shape.columns, 1..=shape.columns.min(4) as usize);
    (columns, 0..=shape.chunk_bytes, 0..=shape.chunk_bytes, any::<u32>()).prop_map(|(columns, a, b, seed)| Write {
        columns: columns.into_iter().collect(),
        offset: a.min(b),
        bytes: a.abs_diff(b),
        seed: u64::from(seed),
    })
}

fn any_writes() -> impl Strategy<Value = (Shape, Vec<Write>)> {
    any_shape().prop_flat_map(|shape| (Just(shape), prop::collection::vec(any_write(shape), 0..6)))
}

#[test]
fn every_width_bears_every_loss_before_and_after_writes() {
    for (seed, shape) in shapes().into_iter().enumerate() {
        let mut row = Row::new(&shape, seed as u64);
        row.lose_all_in_turn();
        let (chunk, last) = (shape.chunk_bytes, shape.columns - 1);
        row.write(&Write { columns: vec![0], offset: 0, bytes: 1, seed: 1 });
        row.write(&Write { columns: vec![last], offset: chunk / 3, bytes: chunk / 2, seed: 2 });
        row.write(&Write { columns: (0..=last).collect(), offset: chunk / 5, bytes: chunk / 7, seed: 3 });
        row.write(&Write { columns: (0..=last).collect(), offset: 0, bytes: chunk, seed: 4 });
        row.lose_all_in_turn();
    }
}

#[test]
fn widest_codes_bear_pairs_from_end_to_end() {
    let wide = |policy, columns| Shape { policy, prime: 0, columns, chunk_bytes: 256 };
    for shape in [wide(RaidPolicy::Raid6, 255), wide(RaidPolicy::Dp, 256), wide(RaidPolicy::Dp, 100)] {
        let mut row = Row::new(&shape, 9);
        row.write(&Write { columns: vec![0, 99, shape.columns - 1], offset: 3, bytes: 200, seed: 1 });
        let ends = [0, 1, 50, shape.columns - 1, shape.columns, shape.columns + 1];
        for first in ends {
            for second in ends.into_iter().filter(|second| first < *second) {
                row.lose(&[first, second]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn lost_chunks_come_back_after_any_writes((shape, writes) in any_writes(), seed in 0..1_u64 << 40) {
        let mut row = Row::new(&shape, seed);
        for write in &writes {
            row.write(write);
        }
        row.lose_all_in_turn();
    }

    #[test]
    fn affected_parity_is_where_parity_changes((shape, writes) in any_writes(), column in 0..20_u32) {
        let column = column % shape.columns;
        for Write { offset, bytes, .. } in writes {
            let changed = changed_parity(&shape, column, offset, bytes);
            let affected = shape.code().affected_parity(column, offset, bytes);
            for (affected, changed) in affected.into_iter().zip(changed) {
                let hull = changed.first().zip(changed.last()).map(|(first, last)| *first..last + 1);
                prop_assert_eq!((affected.end - affected.start) as usize, hull.clone().map_or(0, |hull| hull.len()));
                if let Some(hull) = hull {
                    prop_assert_eq!((affected.start as usize, affected.end as usize), (hull.start, hull.end));
                }
            }
        }
    }
}

/// Bytes of each parity chunk that change with any byte of the range, each by itself so that none hides another.
fn changed_parity(shape: &Shape, column: u32, offset: u64, bytes: u64) -> [BTreeSet<usize>; 2] {
    let code = shape.code();
    let mut changed = [BTreeSet::new(), BTreeSet::new()];
    let chunk_bytes = shape.chunk_bytes as usize;
    // The ends of the range and of every row of it are enough for the first and the last byte.
    let row_bytes = if shape.prime == 0 { shape.chunk_bytes } else { shape.chunk_bytes / u64::from(shape.prime - 1) };
    let places = (offset..offset + bytes).filter(|byte| {
        *byte == offset || byte + 1 == offset + bytes || byte % row_bytes == 0 || (byte + 1) % row_bytes == 0
    });
    let mut parity = vec![vec![0; chunk_bytes]; code.parity_chunks()];
    for byte in places {
        code.update(&mut exclusive(&mut parity), column, byte, &[0], &[1]).unwrap();
        for (chunk, changed) in parity.iter_mut().zip(&mut changed) {
            changed.extend(chunk.iter().enumerate().filter(|(_, value)| **value != 0).map(|(index, _)| index));
            chunk.fill(0);
        }
    }
    changed
}

#[test]
fn a_code_says_what_it_does_not_bear() {
    let row = Row::new(&Shape { policy: RaidPolicy::Raid6, prime: 0, columns: 4, chunk_bytes: 64 }, 1);
    let mut chunks: Vec<_> = row.data.iter().chain(&row.parity).cloned().collect();
    let whole = chunks.clone();
    let refused = |result: Result<(), ArrayError>| result.unwrap_err().to_string();

    let lost = row.code.rebuild(&mut exclusive(&mut chunks), &[0, 1, 2]);
    assert_eq!(refused(lost), "parity: chunks [0, 1, 2] of 6 are lost, and the code bears 2");
    assert!(row.code.rebuild(&mut exclusive(&mut chunks), &[6]).is_err());
    assert!(row.code.rebuild(&mut exclusive(&mut chunks[..5]), &[0]).is_err());
    assert_eq!(chunks, whole);

    let mut parity = row.parity.clone();
    let mut short = row.data.clone();
    short[2].pop();
    let encoded = row.code.encode(&shared(&short), &mut exclusive(&mut parity));
    assert_eq!(refused(encoded), "parity: a chunk of 63 bytes among those of 64");
    assert!(row.code.encode(&shared(&row.data[..3]), &mut exclusive(&mut parity)).is_err());
    assert!(row.code.encode(&shared(&row.data), &mut exclusive(&mut parity[..1])).is_err());
    let updated = row.code.update(&mut exclusive(&mut parity), 0, 60, &[0; 5], &[0; 5]);
    assert_eq!(refused(updated), "parity: 5 bytes from 60 do not lie in a chunk of 64");
    assert!(row.code.update(&mut exclusive(&mut parity), 4, 0, &[0], &[1]).is_err());
    assert!(row.code.update(&mut exclusive(&mut parity), 0, 0, &[0], &[1, 2]).is_err());
    assert!(row.code.update(&mut exclusive(&mut parity), 0, u64::MAX, &[0], &[1]).is_err());
    assert!(row.code.reconstruct(&shared(&row.data), &mut exclusive(&mut parity), 1, 64).is_err());
    assert_eq!(parity, row.parity);
}

#[test]
fn a_code_bears_only_widths_it_can_tell_apart() {
    let refused = |policy, columns| Code::new(policy, columns, 4096).unwrap_err().to_string();
    assert_eq!(refused(RaidPolicy::Raid10, 2), "raid: RAID 10 has no parity");
    assert_eq!(refused(RaidPolicy::Raid6, 256), "raid: RAID 6 of 256 data disks: at most 255 in a set");
    assert_eq!(refused(RaidPolicy::Dp, 257), "raid: RAID DP of 257 data disks: at most 256 in a set");
    assert!(Code::new(RaidPolicy::Raid5, 0, 4096).is_err());
    // No prime; no more than the columns; less one no divisor of the chunk.
    for (prime, columns, chunk_bytes) in [(9, 4, 64), (1, 0, 64), (5, 5, 64), (7, 4, 64)] {
        let code = Code::diagonal(prime, columns, chunk_bytes);
        assert!(code.is_err(), "{prime}, {columns}, {chunk_bytes}: {code:?}");
    }
}
