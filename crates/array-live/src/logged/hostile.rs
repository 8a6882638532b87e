//! Journals and checkpoints whose sums are right and whose contents cannot be: refused, and never a panic.

use std::{fs, path::PathBuf};

use assay_array_model::{DiskPlan, HostFlashPlan, MechanicalPlan};
use proptest::prelude::*;

use super::LoggedStore;
use crate::{
    Durability, ServeError,
    bench::plans::{KIB, MIB, host_flash, mechanical},
    store::kept::HEAD_BYTES,
};

struct Bench {
    at: PathBuf,
    plan: HostFlashPlan,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.at);
    }
}

impl Bench {
    fn new(name: &str) -> Self {
        let at = std::env::temp_dir().join(format!("assay-hostile-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&at);
        let mut plan = host_flash::plan();
        plan.volumes.truncate(2);
        plan.volumes.iter_mut().for_each(|volume| volume.bytes = 512 * KIB);
        plan.log.container_bytes = 128 * KIB;
        plan.log.room_bytes = 64 * MIB;
        plan.node.disk = DiskPlan::Mechanical(MechanicalPlan { capacity_bytes: 16 * MIB, ..mechanical() });
        Self { at, plan }
    }

    fn open(&self) -> Result<LoggedStore, ServeError> {
        LoggedStore::open(&self.at, &self.plan, Durability::Battery, None)
    }

    /// A store with a checkpoint, and changes of every kind after it.
    fn fill(&self) {
        let mut store = self.open().unwrap();
        let bytes = |fill: u8| (0..256 * KIB).map(|at| (at / 31 * 7 % 251) as u8 ^ fill).collect::<Vec<u8>>();
        store.write(0, 0, &bytes(1)).unwrap();
        store.snapshot("one").unwrap();
        store.set_checkpoints(1);
        store.write(0, 64 * KIB, &bytes(2)).unwrap();
        store.set_checkpoints(u64::MAX);
        store.write(1, 0, &bytes(3)).unwrap();
        store.set_attribute(1, "user.kind", Some(b"log")).unwrap();
        store.pull(3, true).unwrap();
        store.restore(3, 40).unwrap();
        store.snapshot("two").unwrap();
        store.revert("one").unwrap();
        store.write(1, 4096, &[7; 4096]).unwrap();
    }

    /// Opens the store, and does to it what one does.
    fn use_it(&self) -> Result<(), ServeError> {
        let mut store = self.open()?;
        let mut bytes = vec![0; 512 << 10];
        (0..2).for_each(|volume| drop(store.read(volume, 0, &mut bytes)));
        let _ = store.write(0, 0, &vec![9; 200 << 10]);
        let _ = store.restore(5, 20);
        let _ = store.reclaim(20);
        let _ = store.revert("one");
        let _ = store.reading();
        store.close()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_checkpoint_with_other_bytes_is_refused_or_opens(
        at in any::<prop::sample::Index>(), bytes in prop::collection::vec(any::<u8>(), 1..9),
    ) {
        let bench = Bench::new("checkpoint");
        bench.fill();
        let path = bench.at.join("checkpoint");
        let mut whole = fs::read(&path).unwrap();
        // What comes after the number; numbers stand together, and contents are many.
        let at = 28 + at.index(whole.len() - 28 - bytes.len());
        whole[at..at + bytes.len()].copy_from_slice(&bytes);
        let sum = crc32c::crc32c(&whole[4..]);
        whole[..4].copy_from_slice(&sum.to_le_bytes());
        fs::write(&path, whole).unwrap();
        if let Err(error) = bench.use_it() {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }

    #[test]
    fn a_change_with_other_bytes_is_refused_or_made(
        which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..5), early in any::<bool>(),
    ) {
        let bench = Bench::new("changes");
        bench.fill();
        let path = bench.at.join("journal");
        let mut whole = fs::read(&path).unwrap();
        let word = |whole: &[u8], at: usize| u32::from_le_bytes(whole[at..at + 4].try_into().unwrap()) as usize;
        let (mut begins, mut begin) = (Vec::new(), HEAD_BYTES as usize);
        while word(&whole, begin + 4) != 0 {
            begins.push(begin);
            begin += (24 + word(&whole, begin)).max(40);
        }
        let begin = *which.get(&begins);
        let length = word(&whole, begin);
        // Kind, numbers and lengths are at the beginning.
        let within = if early { length.min(24) } else { length };
        let at = begin + 20 + at.index(within);
        let end = (at + bytes.len()).min(begin + 20 + length);
        whole[at..end].copy_from_slice(&bytes[..end - at]);
        let summed = length.max(16);
        let sum = crc32c::crc32c(&whole[begin + 20..begin + 20 + summed]);
        whole[begin + 16..begin + 20].copy_from_slice(&sum.to_le_bytes());
        let sum = crc32c::crc32c_append(crc32c::crc32c(&whole[begin..begin + 4]), &whole[begin + 8..begin + 20]);
        whole[begin + 4..begin + 8].copy_from_slice(&sum.to_le_bytes());
        fs::write(&path, whole).unwrap();
        if let Err(error) = bench.use_it() {
            prop_assert!(!error.to_string().contains('\n'));
        }
    }
}
