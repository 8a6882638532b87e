//! A volume on simulated disks: bytes go where the geometry says, whole disks are lost and rebuilt.

use assay_array_model::{Code, Geometry, RaidPolicy};
use proptest::prelude::*;

use crate::{
    geometry::geometry,
    row::{exclusive, random_bytes, shared},
};

/// Disks of a member, `disks[disk][row]` a chunk, and the volume they should hold.
struct Member {
    geometry: Geometry,
    code: Code,
    rows: u64,
    disks: Vec<Vec<Vec<u8>>>,
    volume: Vec<u8>,
}

impl Member {
    fn new(geometry: Geometry, rows: u64) -> Self {
        let (sets, chunk) = (geometry.sets(), geometry.chunk_bytes() as usize);
        let disks = vec![vec![vec![0; chunk]; rows as usize]; (sets * geometry.set_disks()) as usize];
        let volume = vec![0; geometry.usable_bytes(rows * geometry.chunk_bytes()) as usize];
        Self { code: Code::of(&geometry).unwrap(), geometry, rows, disks, volume }
    }

    /// Disks of a row: of its columns, then of its parity.
    fn row_disks(&self, set: u32, row: u64) -> Vec<u32> {
        let columns = (0..self.geometry.columns()).map(|column| self.geometry.data_disk(set, row, column));
        let parity = (0..self.geometry.policy().parity_disks()).map(|which| self.geometry.parity_disk(set, row, which));
        columns.chain(parity).collect()
    }

    fn take_row(&mut self, set: u32, row: u64) -> Vec<Vec<u8>> {
        let disks = self.row_disks(set, row);
        disks.iter().map(|disk| std::mem::take(&mut self.disks[*disk as usize][row as usize])).collect()
    }

    fn put_row(&mut self, set: u32, row: u64, chunks: Vec<Vec<u8>>) {
        for (disk, chunk) in self.row_disks(set, row).into_iter().zip(chunks) {
            self.disks[disk as usize][row as usize] = chunk;
        }
    }

    /// Writes to the volume chunk by chunk, each with its parity by one way or the other.
    fn write(&mut self, offset: u64, bytes: &[u8], reconstruct: bool) {
        let chunk_bytes = self.geometry.chunk_bytes();
        let columns = self.geometry.columns() as usize;
        self.volume[offset as usize..offset as usize + bytes.len()].copy_from_slice(bytes);
        let (mut offset, mut left) = (offset, bytes);
        while !left.is_empty() {
            let within = offset % chunk_bytes;
            let (new, rest) = left.split_at(left.len().min((chunk_bytes - within) as usize));
            let place = self.geometry.place(offset / chunk_bytes);
            let mut chunks = self.take_row(place.set, place.row);
            let (data, parity) = chunks.split_at_mut(columns);
            let range = within as usize..within as usize + new.len();
            let old = data[place.column as usize][range.clone()].to_vec();
            data[place.column as usize][range].copy_from_slice(new);
            let mut parity = exclusive(parity);
            if reconstruct {
                self.code.reconstruct(&shared(data), &mut parity, within, new.len() as u64).unwrap();
            } else {
                self.code.update(&mut parity, place.column, within, &old, new).unwrap();
            }
            self.put_row(place.set, place.row, chunks);
            (offset, left) = (offset + new.len() as u64, rest);
        }
    }

    /// Reads the volume through the places of its chunks.
    fn read(&self) -> Vec<u8> {
        let chunks = self.volume.len() as u64 / self.geometry.chunk_bytes();
        let places = (0..chunks).map(|chunk| self.geometry.place(chunk));
        places.flat_map(|place| self.disks[place.disk as usize][place.row as usize].iter().copied()).collect()
    }

    /// Replaces disks by ones that hold something else and rebuilds every row.
    fn rebuild(&mut self, lost: &[u32]) {
        for disk in lost {
            self.disks[*disk as usize].iter_mut().for_each(|chunk| chunk.fill(0xEE));
        }
        for set in 0..self.geometry.sets() {
            for row in 0..self.rows {
                let in_row = self.row_disks(set, row).into_iter().zip(0..);
                let lost: Vec<u32> = in_row.filter(|(disk, _)| lost.contains(disk)).map(|(_, chunk)| chunk).collect();
                let mut chunks = self.take_row(set, row);
                self.code.rebuild(&mut exclusive(&mut chunks), &lost).unwrap();
                self.put_row(set, row, chunks);
            }
        }
    }
}

/// Sets that Geometry allows, with all three primes of DP.
fn any_member() -> impl Strategy<Value = (Geometry, u64)> {
    let shapes = vec![
        (RaidPolicy::Raid5, 1, 3),
        (RaidPolicy::Raid5, 1, 9),
        (RaidPolicy::Raid50, 2, 5),
        (RaidPolicy::Raid50, 3, 4),
        (RaidPolicy::Raid6, 1, 4),
        (RaidPolicy::Raid6, 1, 11),
        (RaidPolicy::Raid60, 2, 6),
        (RaidPolicy::Dp, 1, 3),
        (RaidPolicy::Dp, 2, 6),
        (RaidPolicy::Dp, 1, 13),
        (RaidPolicy::Dp, 1, 20),
    ];
    (prop::sample::select(shapes), 1..=2_u64).prop_map(|((policy, sets, disks), turns)| {
        let rows = if disks > 9 { u64::from(disks) } else { turns * u64::from(disks) + 1 };
        (geometry(policy, sets, disks, 4096), rows)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whole_disks_come_back(
        (geometry, rows) in any_member(),
        writes in prop::collection::vec((any::<u64>(), 1..40_000_usize, any::<bool>()), 1..12),
        lost in prop::collection::vec((any::<u32>(), any::<u32>()), 3),
    ) {
        let mut member = Member::new(geometry, rows);
        let all = random_bytes(7, member.volume.len());
        member.write(0, &all, false);
        for (seed, bytes, reconstruct) in writes {
            let bytes = bytes.min(member.volume.len());
            let offset = seed % (member.volume.len() - bytes + 1) as u64;
            member.write(offset, &random_bytes(seed, bytes), reconstruct);
        }
        prop_assert!(member.read() == member.volume, "the volume is not what was written");

        // One disk or two of every set at the same time.
        let set_disks = member.geometry.set_disks();
        let whole = member.disks.clone();
        for (first, second) in lost {
            let mut gone = Vec::new();
            for set in 0..member.geometry.sets() {
                gone.push(set * set_disks + first % set_disks);
                if member.code.parity_chunks() == 2 {
                    gone.push(set * set_disks + second % set_disks);
                }
            }
            member.rebuild(&gone);
            prop_assert!(member.disks == whole, "disks {:?} did not come back", gone);
        }
        prop_assert!(member.read() == member.volume);
    }
}

#[test]
fn every_pair_of_disks_of_a_set_comes_back() {
    for (policy, sets, disks) in [(RaidPolicy::Raid50, 2, 4), (RaidPolicy::Raid60, 2, 5), (RaidPolicy::Dp, 2, 7)] {
        let mut member = Member::new(geometry(policy, sets, disks, 4096), u64::from(disks));
        let all = random_bytes(3, member.volume.len());
        member.write(0, &all, true);
        let whole = member.disks.clone();
        for first in 0..disks {
            for second in first..if policy == RaidPolicy::Raid50 { first + 1 } else { disks } {
                let lost: Vec<u32> = (0..sets).flat_map(|set| [set * disks + first, set * disks + second]).collect();
                member.rebuild(&lost);
                assert!(member.disks == whole, "{policy:?}: disks {lost:?} did not come back");
            }
        }
        assert!(member.read() == all);
    }
}
