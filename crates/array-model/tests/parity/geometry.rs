//! Where chunks lie.

use std::collections::{BTreeMap, BTreeSet};

use assay_array_model::{Geometry, PartialWrite, RaidPlan, RaidPolicy};
use proptest::prelude::*;

pub(crate) fn geometry(policy: RaidPolicy, sets: u32, set_disks: u32, chunk_bytes: u64) -> Geometry {
    let raid = RaidPlan { policy, set_disks, chunk_bytes, partial_write: PartialWrite::Cheapest, misalign_bytes: 0 };
    Geometry::new(&raid, sets * set_disks).unwrap()
}

/// Any policy with numbers of sets and disks that it allows.
pub(crate) fn any_geometry() -> impl Strategy<Value = Geometry> {
    let of = |policy, sets: std::ops::RangeInclusive<u32>, disks: std::ops::RangeInclusive<u32>, step: u32| {
        (Just(policy), sets, disks.prop_map(move |disks| disks * step)).boxed()
    };
    let policies = prop_oneof![
        of(RaidPolicy::Raid0, 1..=3, 1..=8, 1),
        of(RaidPolicy::Raid1, 1..=1, 1..=1, 2),
        of(RaidPolicy::Raid10, 1..=3, 1..=6, 2),
        of(RaidPolicy::Raid5, 1..=1, 3..=24, 1),
        of(RaidPolicy::Raid50, 2..=4, 3..=12, 1),
        of(RaidPolicy::Raid6, 1..=1, 4..=24, 1),
        of(RaidPolicy::Raid60, 2..=3, 4..=12, 1),
        of(RaidPolicy::Dp, 1..=3, 3..=20, 1),
    ];
    (policies, 12..=20_u32).prop_map(|((policy, sets, disks), bits)| geometry(policy, sets, disks, 1 << bits))
}

/// What each disk holds of the first rows of all sets: `(disk, row)` of data, of mirrors and of parity.
fn held(geometry: &Geometry, rows: u64) -> [Vec<(u32, u64)>; 3] {
    let mut held = [Vec::new(), Vec::new(), Vec::new()];
    for row in 0..rows {
        for set in 0..geometry.sets() {
            for column in 0..geometry.columns() {
                let place = geometry.place(geometry.chunk(set, row, column));
                held[0].push((place.disk, row));
                if geometry.policy().copies() == 2 {
                    held[1].push((place.disk + 1, row));
                }
            }
            for which in 0..geometry.policy().parity_disks() {
                held[2].push((geometry.parity_disk(set, row, which), row));
            }
        }
    }
    held
}

proptest! {
    #[test]
    fn a_place_leads_back_to_its_chunk(geometry in any_geometry(), chunk in 0..1_u64 << 50) {
        let place = geometry.place(chunk);
        prop_assert_eq!(geometry.chunk(place.set, place.row, place.column), chunk);
        prop_assert_eq!(geometry.data_disk(place.set, place.row, place.column), place.disk);
        prop_assert!(place.set < geometry.sets() && place.column < geometry.columns());
        prop_assert_eq!(place.disk / geometry.set_disks(), place.set);
    }

    #[test]
    fn chunks_fill_rows_without_gaps_or_overlap(geometry in any_geometry(), rows in 1..60_u64) {
        let chunks = rows * u64::from(geometry.sets()) * u64::from(geometry.columns());
        let placed: BTreeSet<_> = (0..chunks).map(|chunk| geometry.place(chunk)).map(|p| (p.row, p.disk)).collect();
        prop_assert_eq!(placed.len() as u64, chunks);
        prop_assert!(placed.iter().all(|(row, _)| *row < rows));

        let all: Vec<_> = held(&geometry, rows).concat();
        let distinct: BTreeSet<_> = all.iter().copied().collect();
        prop_assert_eq!(distinct.len(), all.len(), "two chunks in one place");
        let disks = geometry.sets() * geometry.set_disks();
        prop_assert_eq!(all.len() as u64, rows * u64::from(disks), "a place is left empty");
        prop_assert!(all.iter().all(|(disk, _)| *disk < disks));
    }

    #[test]
    fn rotation_gives_every_disk_the_same_parity(geometry in any_geometry(), turns in 1..4_u64) {
        let policy = geometry.policy();
        let rows = turns * u64::from(geometry.set_disks());
        let mut parity = BTreeMap::new();
        for (disk, _) in &held(&geometry, rows)[2] {
            *parity.entry(*disk).or_insert(0_u64) += 1;
        }
        let disks = 0..geometry.sets() * geometry.set_disks();
        for disk in disks {
            let expected = match policy {
                RaidPolicy::Dp if disk % geometry.set_disks() >= geometry.columns() => rows,
                RaidPolicy::Dp => 0,
                _ => turns * u64::from(policy.parity_disks()),
            };
            prop_assert_eq!(parity.get(&disk).copied().unwrap_or(0), expected, "disk {}", disk);
        }
    }

    #[test]
    fn capacity_is_that_of_whole_rows(geometry in any_geometry(), bytes in 1..1_u64 << 50) {
        let row = geometry.chunk_bytes() * u64::from(geometry.columns()) * u64::from(geometry.sets());
        let usable = geometry.usable_bytes(geometry.disk_bytes(bytes));
        prop_assert!((bytes..bytes + row).contains(&usable), "{} bytes need room for {}", bytes, usable);
        let last = geometry.place((usable - 1) / geometry.chunk_bytes());
        prop_assert_eq!((last.row + 1) * geometry.chunk_bytes(), geometry.disk_bytes(bytes));
    }
}
